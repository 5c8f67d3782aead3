//! The tasks of an owner beside shipping, one at a time.

use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use vellum::ship::Shipper;

use super::ShipError;
use super::local;
use super::requests::{Body, Requests, blocking, now};
use super::trim::{Retention, Trimmed};
use crate::decide::{Answer, Ask, Merger, Point, Retain, Span, Stop};
use crate::object::{self, Built, Header, Key, hash};

/// A finished task.
pub(super) enum Kept {
    /// The header of a chunk that may be merged.
    Saw(Option<Header>),
    /// A merged object was made, or cannot be made.
    Merged,
    /// Old generations were deleted, or that failed and is tried again later.
    Retained(Option<Box<Retention>>, Result<Trimmed, ShipError>),
}

pub(super) type Keeping = BoxFuture<'static, Result<Kept, ShipError>>;

/// How long generations are kept.
#[derive(Clone, Copy, Debug)]
pub struct KeepOptions {
    /// How long a generation lasts, if anything is shipped in it; zero: for ever.
    pub rotate: Duration,
    /// The range of ended generations that is not deleted; absent: all.
    pub retain: Option<Retain>,
    /// Hears what was deleted, and why that failed.
    pub note: fn(&str),
}

impl Default for KeepOptions {
    fn default() -> KeepOptions {
        KeepOptions { rotate: Duration::ZERO, retain: None, note: |_| {} }
    }
}

/// The task to do, and whether it is being done.
pub(super) struct Upkeep {
    merger: Merger,
    is_working: bool,
    retention: Option<Box<Retention>>,
}

impl Upkeep {
    pub(super) fn new(merger: Merger) -> Upkeep {
        Upkeep { merger, is_working: false, retention: None }
    }

    /// Merges what is shipped in another generation.
    pub(super) fn merge_with(&mut self, merger: Merger) {
        self.merger = merger;
    }

    /// Deletes what the owner of a generation does not retain.
    pub(super) fn retain(
        &mut self,
        requests: &Arc<Requests>,
        generation: u32,
        retain: Retain,
    ) -> Keeping {
        self.is_working = true;
        let (requests, known) = (Arc::clone(requests), self.retention.take());
        Box::pin(async move {
            let mut known = match known {
                Some(known) => known,
                None => match Retention::open(Arc::clone(&requests.store), false).await {
                    Ok(opened) => Box::new(opened),
                    Err(error) => return Ok(Kept::Retained(None, Err(error))),
                },
            };
            let outcome = known.pass(generation, retain).await;
            Ok(Kept::Retained(Some(known), outcome))
        })
    }

    pub(super) fn is_working(&self) -> bool {
        self.is_working
    }

    /// A chunk was created here.
    pub(super) fn note(&mut self, chunk: Header) {
        self.merger.note(chunk);
    }

    /// Where the chunks begin that are not merged, and how many they are.
    pub(super) fn merge_from(&self) -> Option<(Point, u64)> {
        self.merger.resume_at()
    }

    /// Begins the next thing, while nothing is being done. Only what is before `stored` is touched;
    /// `is_busy`: a process waits for chunks.
    pub(super) fn next(
        &mut self,
        requests: &Arc<Requests>,
        stored: u64,
        is_busy: bool,
    ) -> Option<Keeping> {
        let asked = self.merger.ask(stored);
        let requests = Arc::clone(requests);
        let work: Keeping = if let Some(span) = self.merger.ready(is_busy).cloned() {
            Box::pin(merge(requests, span))
        } else if let Some(key) = asked {
            Box::pin(look(requests, key))
        } else {
            return None;
        };
        self.is_working = true;
        Some(work)
    }

    pub(super) fn take(&mut self, kept: Kept, note: fn(&str)) {
        self.is_working = false;
        match kept {
            Kept::Saw(header) => self.merger.saw(header),
            Kept::Merged => self.merger.done(),
            Kept::Retained(retention, outcome) => {
                self.retention = retention;
                match outcome {
                    Ok(Trimmed { objects: 0, .. }) => {}
                    Ok(trimmed) => note(&told(trimmed)),
                    Err(error) => note(&format!("old generations stay for now: {error}")),
                }
            }
        }
    }
}

fn told(trimmed: Trimmed) -> String {
    let Trimmed { objects, generations } = trimmed;
    format!("deleted {objects} objects that are not retained, {generations} generations wholly")
}

async fn look(requests: Arc<Requests>, key: Key) -> Result<Kept, ShipError> {
    match requests.answer(Ask::Look(key), None).await? {
        Answer::Saw(seen) => Ok(Kept::Saw(seen)),
        answer => unreachable!("a look is answered by {answer:?}"),
    }
}

/// Makes a merged object of the local bytes, if they are still here. One that is there has the same
/// bytes, or another history.
async fn merge(requests: Arc<Requests>, span: Span) -> Result<Kept, ShipError> {
    let (shipper, log_id) = (Arc::clone(&requests.shipper), requests.log_id);
    let (start, after) = (span.header.start, span.header.after);
    let Some(built) = blocking(move || Ok(built(&shipper, log_id, &span))).await? else {
        return Ok(Kept::Merged);
    };
    let header = built.header;
    let key = header.key().expect("a merged object has a name");
    let mut body = Body::Object(built);
    loop {
        if requests.answer(Ask::Create(header), Some(&mut body)).await? == Answer::Created(true) {
            return Ok(Kept::Merged);
        }
        match requests.answer(Ask::Look(key), None).await? {
            Answer::Saw(Some(seen)) if seen.after == after => return Ok(Kept::Merged),
            Answer::Saw(Some(_)) => return Err(ShipError::Stopped(Stop::Diverged { at: start })),
            _ => {}
        }
    }
}

/// Nothing if a part of it is not here any more, or cannot be read: the chunks are in the store.
fn built(shipper: &Shipper, log_id: [u8; 16], span: &Span) -> Option<Built> {
    let mut raw = Vec::new();
    let (mut lsn, mut chain) = (span.header.start, span.header.before);
    for mark in &span.marks {
        let link = local::bytes(shipper, lsn, mark.end, &mut raw).ok()??;
        if link.after(chain) != mark.after {
            return None;
        }
        (lsn, chain) = (mark.end, mark.after);
    }
    let header = Header { log_id, time: now(), content: hash(&raw), ..span.header };
    Some(object::merged(header, &span.marks, &raw))
}
