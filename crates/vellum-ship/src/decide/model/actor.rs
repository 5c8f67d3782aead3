//! A machine with a log, which ships it or not.

use super::store::{LOST, ORIGIN, content};
use crate::decide::reader::Plan;
use crate::decide::{Ask, Claim, Intent, Owner, Piece, Point, Resume, Saved};
use crate::object::{FileMark, Link};

/// Cells of a segment.
pub(super) const SEGMENT: u64 = 2;

#[allow(clippy::large_enum_variant, reason = "one for each actor")]
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Process {
    Down,
    Resuming(Resume),
    Owning(Owner),
    Claiming(Claim),
    Fenced,
    Diverged,
}

impl Process {
    pub(super) fn is_over(&self) -> bool {
        matches!(self, Process::Fenced | Process::Diverged)
    }

    pub(super) fn is_alive(&self) -> bool {
        !self.is_over() && *self != Process::Down
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) struct Actor {
    pub(super) letter: u8,
    pub(super) log: Vec<u8>,
    pub(super) durable: u64,
    pub(super) begin: u64,
    pub(super) saved: Option<Saved>,
    pub(super) first_saved: Option<Saved>,
    /// Where its generation begins.
    pub(super) from: (u32, Point),
    pub(super) intent: Option<Intent>,
    /// The generation before, and where it ended.
    pub(super) ended: Option<(u32, Point)>,
    pub(super) process: Process,
    pub(super) flight: Vec<(Point, Ask)>,
}

impl Actor {
    pub(super) fn new(letter: u8, saved: Option<Saved>) -> Actor {
        Actor {
            letter,
            log: Vec::new(),
            durable: 0,
            begin: 0,
            first_saved: saved.clone(),
            saved,
            from: (0, ORIGIN),
            intent: None,
            ended: None,
            process: Process::Down,
            flight: Vec::new(),
        }
    }

    /// The same directory on another machine, which appends other letters.
    pub(super) fn copy(&self) -> Actor {
        Actor {
            letter: self.letter + 5,
            durable: self.log.len() as u64,
            process: Process::Down,
            flight: Vec::new(),
            ..self.clone()
        }
    }

    pub(super) fn link(&self, start: u64, end: u64) -> Option<Link> {
        let is_here = start >= self.begin && end <= self.log.len() as u64;
        let file = FileMark { time: None, is_continuation: false };
        is_here.then(|| Link {
            start,
            end,
            file: start.is_multiple_of(SEGMENT).then_some(file),
            content: content(&self.log[start as usize..end as usize]),
        })
    }

    /// The content of a position: a letter, `?` behind the end, or the mark of a lost cell.
    pub(super) fn local(&self, at: u64) -> u8 {
        match at >= self.begin {
            true => self.log.get(at as usize).copied().unwrap_or(b'?'),
            false => LOST,
        }
    }

    /// Its log up to a position.
    pub(super) fn log_until(&self, end: u64) -> Vec<u8> {
        (0..end).map(|at| self.local(at)).collect()
    }

    /// The end that it has in common with the store, as `driver/fork.rs` finds it.
    pub(super) fn common_end(&self, plan: &Plan, trusted: u64) -> u64 {
        let first = trusted.max(self.begin);
        let later = plan.pieces.iter().filter(|piece| piece.until > first);
        let differs = |piece: &Piece| {
            let header = piece.header;
            let is_whole = piece.until == header.end;
            let is_same = is_whole && self.link(header.start, header.end) == Some(header.link());
            // Of a piece whose begin is gone nothing is compared.
            let from = if header.start < self.begin { first } else { header.start };
            (!is_same).then_some(from)
        };
        later.into_iter().find_map(differs).unwrap_or(plan.end.lsn)
    }
}
