//! Which chunks become one merged object.
//!
//! Where merged objects begin and end follows from the chain alone. So two of one generation are
//! the same or have no position in common, even if different shippers made them. Otherwise the
//! chunks that one of them covers could be deleted, and a reader of the other one would miss them.

use std::collections::{HashMap, VecDeque};

use super::Point;
use crate::object::{FileMark, Hash, Header, Key, Kind, Link, Mark};

/// A merged object has chunks that begin in one such stretch of positions, and in one segment.
/// Part of the format.
pub(super) const SPAN: u64 = 8 << 20;
/// The most chunks of a merged object. Part of the format.
pub(super) const CHUNKS_MAX: usize = 1024;
/// Fewer chunks are left as they are: they are large, and would be uploaded twice for little.
pub(super) const CHUNKS_MIN: usize = 9;
/// The most merged objects that wait. The oldest is given up for the next one.
const READY_MAX: usize = 64;
/// The most chunks that are remembered.
const CREATED_MAX: usize = 4 * CHUNKS_MAX;
/// Beyond this many they are made although a process waits for chunks.
const PRESSING: usize = 8;

/// A merged object that can be made.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Span {
    /// Its header, without the hash of its bytes.
    pub header: Header,
    /// The chunks in it.
    pub marks: Vec<Mark>,
}

/// Follows the chain behind the owner, and finds chunks that can be merged.
#[derive(Clone, Debug)]
pub struct Merger {
    generation: u32,
    /// Positions of a segment.
    capacity: u64,
    /// Where the chunks begin that are gathered.
    start: Point,
    file: Option<FileMark>,
    marks: Vec<Mark>,
    /// About so many chunks follow of which nothing is known here.
    unknown: u64,
    /// Whether a merged object may begin at `start`: not if the objects before it are unknown.
    is_aligned: bool,
    /// Chunks that were created here, by where they begin. They need not be on the chain.
    created: HashMap<Point, Header>,
    ready: VecDeque<Span>,
    is_over: bool,
}

impl Merger {
    /// Gathers what comes behind `start`, at which a generation begins.
    pub fn new(generation: u32, start: Point, capacity: u64) -> Merger {
        Merger {
            generation,
            capacity,
            start,
            file: None,
            marks: Vec::new(),
            unknown: 0,
            is_aligned: true,
            created: HashMap::new(),
            ready: VecDeque::new(),
            is_over: false,
        }
    }

    /// Continues where [`Merger::resume_at`] said.
    pub fn resume(generation: u32, (start, unknown): (Point, u64), capacity: u64) -> Merger {
        Merger { unknown, ..Merger::new(generation, start, capacity) }
    }

    /// Gathers what comes behind a point of which it is not known what comes before it. The first
    /// chunks are left as they are.
    pub fn amid(generation: u32, start: Point, capacity: u64) -> Merger {
        Merger { is_aligned: false, ..Merger::new(generation, start, capacity) }
    }

    /// A chunk was created by this shipper. It spares a request.
    pub fn note(&mut self, created: Header) {
        let has_room = self.created.len() < CREATED_MAX;
        if !self.is_over && has_room && created.start >= self.tip().lsn {
            let at = Point { lsn: created.start, chain: created.before };
            self.created.insert(at, created);
        }
    }

    /// Gathers the chunks before `stored`, which are acknowledged and stored. Returns the name of a
    /// chunk that is not known, whose header is to be told by [`Merger::saw`]; not before there is
    /// something to merge.
    pub fn ask(&mut self, stored: u64) -> Option<Key> {
        while !self.is_over && self.tip().lsn < stored {
            let tip = self.tip();
            match self.created.remove(&tip) {
                Some(header) => self.take(header),
                None => return Some(tip.key(self.generation)).filter(|_| self.has_enough(stored)),
            }
        }
        None
    }

    fn has_enough(&self, stored: u64) -> bool {
        self.cell(stored) != self.cell(self.start.lsn) || self.gathered() >= CHUNKS_MAX as u64
    }

    /// About so many chunks follow behind `start`.
    fn gathered(&self) -> u64 {
        self.unknown + (self.marks.len() + self.created.len()) as u64
    }

    /// The header that was asked for. Where none is, another one has taken over and deleted.
    pub fn saw(&mut self, header: Option<Header>) {
        let tip = self.tip();
        self.unknown = self.unknown.saturating_sub(1);
        match header.filter(|header| header.start == tip.lsn && header.before == tip.chain) {
            Some(header) => self.take(header),
            None => self.is_over = true,
        }
    }

    /// The oldest merged object that can be made, if now is the time for it: while a process waits
    /// for chunks, only when many have gathered.
    pub fn ready(&self, is_busy: bool) -> Option<&Span> {
        let is_time = !is_busy || self.ready.len() >= PRESSING;
        self.ready.front().filter(|_| is_time)
    }

    /// The oldest one was made, or cannot be.
    pub fn done(&mut self) {
        self.ready.pop_front();
    }

    /// Where to begin after a restart, and about how many chunks follow there; nothing if a merged
    /// object may not begin there.
    pub fn resume_at(&self) -> Option<(Point, u64)> {
        let first = self.ready.front().map(|span| span.header);
        let first = first.map(|header| Point { lsn: header.start, chain: header.before });
        let point = first.or_else(|| self.is_aligned.then_some(self.start))?;
        let ready: usize = self.ready.iter().map(|span| span.marks.len()).sum();
        Some((point, ready as u64 + self.gathered()))
    }

    fn tip(&self) -> Point {
        let last = self.marks.last();
        last.map_or(self.start, |mark| Point { lsn: mark.end, chain: mark.after })
    }

    fn take(&mut self, header: Header) {
        match header.kind {
            Kind::Chunk => self.gather(header),
            Kind::Gap => {
                self.cut();
                self.start = Point { lsn: header.end, chain: header.after };
            }
            _ => self.is_over = true,
        }
        self.created.retain(|at, _| at.lsn >= header.end);
    }

    fn gather(&mut self, chunk: Header) {
        if self.marks.is_empty() {
            self.file = chunk.file;
        }
        self.marks.push(Mark { end: chunk.end, time: chunk.time, after: chunk.after });
        let is_full = self.marks.len() == CHUNKS_MAX;
        if is_full || self.cell(chunk.end) != self.cell(self.start.lsn) {
            self.cut();
        }
    }

    fn cell(&self, lsn: u64) -> (u64, u64) {
        (lsn / self.capacity, lsn / SPAN)
    }

    /// Ends what is gathered, and begins anew behind it.
    fn cut(&mut self) {
        let (start, end) = (self.start, self.tip());
        let marks = std::mem::take(&mut self.marks);
        let was_aligned = std::mem::replace(&mut self.is_aligned, true);
        if was_aligned && marks.len() >= CHUNKS_MIN {
            let file = self.file;
            let link = Link { start: start.lsn, end: end.lsn, file, content: Hash::default() };
            let draft = Header::draft(Kind::Merged, self.generation, start.chain, link);
            let header = Header { after: end.chain, marks: marks.len() as u32, ..draft };
            self.ready.push_back(Span { header, marks });
        }
        if self.ready.len() > READY_MAX {
            self.ready.pop_front();
        }
        self.start = end;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CAPACITY: u64 = 64 << 20;

    /// Chunks of one size that follow each other.
    fn chain(from: Point, size: u64, count: usize) -> Vec<Header> {
        let mut at = from;
        let chunk = |_| {
            let (start, end) = (at.lsn, at.lsn + size);
            let link = Link { start, end, file: None, content: Hash([3; 32]) };
            let header = Header::draft(Kind::Chunk, 0, at.chain, link);
            at = Point { lsn: header.end, chain: header.after };
            header
        };
        (0..count).map(chunk).collect()
    }

    fn begin() -> Point {
        Point { lsn: CAPACITY, chain: Hash([7; 32]) }
    }

    fn point(header: &Header) -> Point {
        Point { lsn: header.start, chain: header.before }
    }

    fn ranges(merger: &mut Merger) -> Vec<(u64, u64)> {
        let mut all = Vec::new();
        while let Some(span) = merger.ready(false) {
            all.push((span.header.start, span.header.end));
            merger.done();
        }
        all
    }

    fn merged(mut merger: Merger, chunks: &[Header]) -> Vec<(u64, u64)> {
        let from = merger.tip().lsn;
        for chunk in chunks.iter().filter(|chunk| chunk.start >= from) {
            merger.saw(Some(*chunk));
        }
        ranges(&mut merger)
    }

    #[test]
    fn chunks_of_one_stretch_become_one_object_whatever_was_seen_before() {
        let chunks = chain(begin(), 600 << 10, 200);
        let all = merged(Merger::new(0, begin(), CAPACITY), &chunks);
        assert!(all.len() >= 5, "{all:?}");
        for at in [1, 30, 57] {
            let late = Merger::amid(0, point(&chunks[at]), CAPACITY);
            let late = merged(late, &chunks);
            let expected = all.iter().filter(|range| range.0 > chunks[at].start);
            assert_eq!(late, expected.copied().collect::<Vec<_>>());
        }
    }

    #[test]
    fn a_restart_makes_the_same_objects() {
        let chunks = chain(begin(), 600 << 10, 200);
        let all = merged(Merger::new(0, begin(), CAPACITY), &chunks);
        for stop in 1..chunks.len() {
            let mut first = Merger::new(0, begin(), CAPACITY);
            chunks[..stop].iter().for_each(|chunk| first.saw(Some(*chunk)));
            let at = first.resume_at().expect("a generation begins there");
            let next = merged(Merger::resume(0, at, CAPACITY), &chunks);
            assert_eq!(next, all, "stopped after {stop}");
        }
    }

    #[test]
    fn small_chunks_are_merged_by_their_number_and_large_ones_are_not() {
        let small = merged(Merger::new(0, begin(), CAPACITY), &chain(begin(), 8, 3000));
        let bytes = CHUNKS_MAX as u64 * 8;
        assert_eq!(small, [0, 1].map(|n| (CAPACITY + n * bytes, CAPACITY + (n + 1) * bytes)));
        let large = chain(begin(), 8 << 20, 40);
        assert_eq!(merged(Merger::new(0, begin(), CAPACITY), &large), []);
    }

    #[test]
    fn a_gap_ends_an_object_and_is_in_none() {
        let mut chunks = chain(begin(), 1 << 10, 20);
        let link = |header: &Header| Link { content: Hash::default(), ..header.link() };
        chunks[10] = Header::draft(Kind::Gap, 0, chunks[10].before, link(&chunks[10]));
        let at = Point { lsn: chunks[10].end, chain: chunks[10].after };
        chunks.splice(11.., chain(at, 1 << 20 >> 1, 20));
        let all = merged(Merger::new(0, begin(), CAPACITY), &chunks);
        assert_eq!(all[0], (CAPACITY, chunks[10].start));
        assert_eq!(all[1].0, chunks[10].end);
    }

    #[test]
    fn what_was_created_here_is_not_asked_for_unless_it_is_beside_the_chain() {
        let chunks = chain(begin(), 1 << 10, 20);
        let mut merger = Merger::new(0, begin(), CAPACITY);
        for chunk in &chunks {
            merger.note(*chunk);
        }
        let stray = Header { before: Hash([9; 32]), ..chunks[5] };
        merger.note(stray);
        assert_eq!(merger.ask(chunks[19].end), None);
        let end = begin().lsn + SPAN;
        let mut other = Merger::new(0, begin(), CAPACITY);
        other.note(stray);
        assert_eq!(other.ask(end), Some(begin().key(0)));
        other.saw(None);
        assert_eq!(other.ask(end), None, "what is gone was deleted by somebody");
    }

    /// A shipper that is started again and again looks at the chunks before it once in a while.
    #[test]
    fn what_is_not_known_is_asked_for_when_there_is_enough_of_it() {
        let end = begin().lsn + 8;
        let few = CHUNKS_MAX as u64 - 1;
        assert_eq!(Merger::resume(0, (begin(), few), CAPACITY).ask(end), None);
        let mut enough = Merger::resume(0, (begin(), few + 1), CAPACITY);
        assert_eq!(enough.ask(end), Some(begin().key(0)));
    }

    #[test]
    fn who_waits_is_served_first_until_much_has_gathered() {
        let mut merger = Merger::new(0, begin(), CAPACITY);
        let chunks = chain(begin(), 8, CHUNKS_MAX * PRESSING);
        for chunk in &chunks {
            assert!(merger.ready(true).is_none());
            merger.saw(Some(*chunk));
        }
        assert!(merger.ready(true).is_some());
    }
}
