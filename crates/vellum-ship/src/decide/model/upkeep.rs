//! Merging, closing and deleting.

use super::action::Action;
use super::actor::SEGMENT;
use super::steps::Steps;
use super::store::{Object, content, letters};
use super::world::World;
use crate::decide::rules::{Broken, breaks};
use crate::decide::{Keep, Owner, Point, deletable};
use crate::object::{Hash, Header, Key, Kind, Link, Mark};

impl World {
    pub(super) fn steps_merge(&self, who: usize, owner: &Owner, saved: u64, all: &mut Steps) {
        let (generation, mut at) = (owner.generation(), self.actors[who].from.1);
        while at.lsn < saved {
            let anywhere = breaks(Broken::MergeAnywhere);
            let end = if anywhere { at.lsn } else { at.lsn / SEGMENT * SEGMENT } + SEGMENT;
            let Some(merged) = self.merged(who, generation, at, end) else { return };
            let first = merged.marks[0];
            let next = match anywhere {
                true => Point { lsn: first.end, chain: first.after },
                false => Point { lsn: end, chain: merged.header.after },
            };
            let key = merged.header.key().expect("a merged object has a name");
            let is_local = self.actors[who].link(at.lsn, end).is_some();
            if end <= saved && is_local && self.store.get(&key).is_none() {
                self.step_merge(who, merged, all);
            }
            at = next;
        }
    }

    fn step_merge(&self, who: usize, merged: Object, all: &mut Steps) {
        let Header { start, end, .. } = merged.header;
        let name = format!("merges {start}..{end}");
        self.acts(all, who, Action::Merges, &name, |world| {
            world.left.merges -= 1;
            world.store.create(merged.clone());
        });
        if self.left.floats > 0 {
            self.acts(all, who, Action::MergesLate, &format!("{name}, late"), |world| {
                world.left.merges -= 1;
                world.left.floats -= 1;
                world.float(merged);
            });
        }
    }

    /// The merged object of a segment, made of the chunks that are there.
    fn merged(&self, who: usize, generation: u32, from: Point, end: u64) -> Option<Object> {
        let (mut at, mut marks, mut cells) = (from, Vec::new(), Vec::new());
        let mut file = None;
        while at.lsn < end {
            let stored = self.store.get(&at.key(generation))?.header;
            if !matches!(stored.kind, Kind::Chunk) {
                return None;
            }
            if at == from {
                file = stored.file;
            }
            cells.extend(letters(&stored));
            at = Point { lsn: stored.end, chain: stored.after };
            marks.push(Mark { end: at.lsn, time: 0, after: at.chain });
        }
        let link = Link { start: from.lsn, end, file, content: content(&cells) };
        let header = Header::draft(Kind::Merged, generation, from.chain, link);
        let header = Header { after: at.chain, marks: marks.len() as u32, ..header };
        let log = self.actors[who].log_until(end);
        (at.lsn == end).then_some(Object { header, marks, log })
    }

    /// Closing the generation before, and finding what of it is not needed.
    pub(super) fn steps_delete(&self, who: usize, all: &mut Steps) {
        let Some((generation, end)) = self.actors[who].ended else { return };
        let is_closed = self.store.get(&Key::Closed(generation)).is_some();
        if !is_closed {
            self.acts(all, who, Action::Closes, "closes the generation before", |world| {
                let (start, content) = (end.lsn, Hash::default());
                let link = Link { start, end: start, file: None, content };
                let header = Header::draft(Kind::Closed, generation, end.chain, link);
                world.store.create(Object { header, marks: Vec::new(), log: Vec::new() });
            });
        }
        if !is_closed && !breaks(Broken::MarkerAfterDelete) {
            return;
        }
        self.step_doom(generation, end, Keep::From(0), all);
        if self.left.retains > 0 {
            (1..end.lsn).for_each(|lsn| self.step_doom(generation, end, Keep::From(lsn), all));
            self.step_doom(generation, end, Keep::Nothing, all);
        }
    }

    fn step_doom(&self, generation: u32, end: Point, keep: Keep, all: &mut Steps) {
        let names = self.store.names();
        let old = deletable(generation, end, &names, keep);
        let new: Vec<Key> = old.into_iter().filter(|key| !self.doomed.contains(key)).collect();
        if new.is_empty() {
            return;
        }
        let retained = match keep {
            Keep::Nothing => end.lsn,
            Keep::From(lsn) => lsn,
        };
        let name = || format!("{generation}: {keep:?}, so {} are not needed", new.len());
        self.step(all, Action::PlansDeletion, name, |world| {
            world.left.retains -= u8::from(retained > 0);
            world.retained = world.retained.max(retained);
            world.doomed.extend(&new);
            world.doomed.sort_unstable();
        });
    }

    pub(super) fn steps_of_deleters(&self, all: &mut Steps) {
        for index in 0..self.doomed.len() {
            let name = || format!("{} is deleted", self.doomed[index]);
            self.step(all, Action::Deletes, name, |world| {
                let key = world.doomed.remove(index);
                world.store.delete(&key);
            });
        }
    }
}
