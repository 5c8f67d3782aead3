//! Ships a log step by step, as a test wants it.

use std::path::Path;
use std::sync::Arc;

use bytes::Bytes;
use vellum::ship::Shipper;
use vellum::{Layout, Log, Lsn, Tuning};
use vellum_ship::decide::Point;
use vellum_ship::object::{
    self, Built, FileMark, Hash, Header, Identity, Kind, LOG, Link, Mark, hash,
};
use vellum_ship::store::{MemoryStore, PutOutcome, Store};

/// When the first chunk was made: seconds since 1970.
pub(crate) const FIRST_SECOND: u64 = 1_700_000_000;
const SECOND: u64 = 1_000_000_000;

/// A shipper that takes single steps on command.
pub(crate) struct Hand {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) shipper: Shipper,
    pub(crate) at: Point,
    pub(crate) generation: u32,
    /// The chunks of this generation that were shipped.
    pub(crate) chunks: Vec<(Header, Vec<u8>)>,
    log_id: [u8; 16],
    /// Each object is a second newer than the one before.
    seconds: u64,
}

/// A new log in which segments are small.
pub(crate) fn log(dir: &Path, layout: Layout) -> Log {
    let options =
        vellum::internal::options(layout).tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    let options = if layout == Layout::Text { options.rotate_bytes(16 << 10) } else { options };
    options.open(dir).unwrap()
}

/// Appends records, some of them in batches, and commits.
pub(crate) fn append(log: &Log, count: u64) {
    for number in 0..count {
        let record = format!("record {number} {}", "x".repeat((number % 97) as usize * 3));
        let record = if log.layout() == Layout::Text { record + "\n" } else { record };
        if number % 10 == 9 {
            let mut batch = log.batch();
            batch.push(record.as_bytes()).unwrap();
            batch.push(record.as_bytes()).unwrap();
            batch.append().unwrap();
        } else {
            log.append(record.as_bytes()).unwrap();
        }
    }
    log.sync().unwrap();
}

impl Hand {
    /// Ships the log into a new store in memory.
    pub(crate) async fn begin(log: &Log) -> Hand {
        Hand::begin_in(log, Arc::new(MemoryStore::new())).await
    }

    pub(crate) async fn begin_in(log: &Log, store: Arc<dyn Store>) -> Hand {
        let shipper = log.ship().elect().unwrap().expect("nobody else ships");
        let shape = log.ship().shape().unwrap();
        let begin = shipper.begin().get();
        let log_id = shape.log_id().to_bytes();
        let identity = Identity {
            log_id: shape.log_id().to_string(),
            layout: if shape.layout() == Layout::Text { "text" } else { "framed" }.to_string(),
            segment_bytes: shape.segment_capacity_bytes(),
            shape: shape.to_bytes().iter().map(|byte| format!("{byte:02x}")).collect(),
            begin,
            time: FIRST_SECOND * SECOND,
        };
        let body = identity.encode(log_id, 1);
        let at = Point { lsn: begin, chain: hash(&body) };
        assert_eq!(store.create(LOG, body).await.unwrap(), PutOutcome::Created);
        let (chunks, generation, seconds) = (Vec::new(), 0, FIRST_SECOND);
        Hand { store, shipper, at, generation, chunks, log_id, seconds }
    }

    fn stamped(&mut self, header: Header) -> Header {
        self.seconds += 1;
        Header { log_id: self.log_id, time: self.seconds * SECOND, nonce: 1, ..header }
    }

    async fn put(&self, built: &Built) {
        let key = built.header.key().unwrap().to_string();
        let outcome = self.store.create(&key, built.bytes.clone()).await.unwrap();
        assert_eq!(outcome, PutOutcome::Created, "{key}");
    }

    /// Ships everything durable in chunks of at most so many bytes.
    pub(crate) async fn ship(&mut self, bytes: usize) {
        let durable = self.shipper.durable().unwrap().get();
        while self.at.lsn < durable && self.ship_one(bytes).await {}
    }

    /// Ships one chunk; false if there is nothing more.
    pub(crate) async fn ship_one(&mut self, bytes: usize) -> bool {
        let mut raw = vec![0; bytes];
        let piece = self.shipper.read(Lsn::new(self.at.lsn), &mut raw).unwrap();
        if piece.next.get() == self.at.lsn {
            return false;
        }
        raw.truncate(piece.len);
        let segment = piece.segment;
        let mark = FileMark { time: segment.file_time, is_continuation: segment.is_continuation };
        let file = (segment.start.get() == self.at.lsn).then_some(mark);
        let (start, end, content) = (self.at.lsn, piece.next.get(), hash(&raw));
        let link = Link { start, end, file, content };
        let draft = Header::draft(Kind::Chunk, self.generation, self.at.chain, link);
        let built = object::build(self.stamped(draft), &raw);
        self.put(&built).await;
        self.at = Point { lsn: end, chain: built.header.after };
        self.chunks.push((built.header, raw));
        true
    }

    /// Makes a merged object of chunks, of one segment.
    pub(crate) async fn merge(&mut self, from: usize, to: usize) {
        let chunks = self.chunks[from..to].to_vec();
        let raw: Vec<u8> = chunks.iter().flat_map(|(_, raw)| raw.clone()).collect();
        let mark = |(header, _): &(Header, Vec<u8>)| Mark {
            end: header.end,
            time: header.time,
            after: header.after,
        };
        let marks: Vec<Mark> = chunks.iter().map(mark).collect();
        let (first, last) = (chunks[0].0, chunks[chunks.len() - 1].0);
        let (start, end, file) = (first.start, last.end, first.file);
        let link = Link { start, end, file, content: hash(&raw) };
        let draft = Header::draft(Kind::Merged, self.generation, first.before, link);
        let header = Header { after: last.after, ..self.stamped(draft) };
        self.put(&object::merged(header, &marks, &raw)).await;
    }

    /// Ships a gap over the next chunk's bytes instead of them.
    pub(crate) async fn lose_one(&mut self, bytes: usize) -> (u64, u64) {
        let mut raw = vec![0; bytes];
        let piece = self.shipper.read(Lsn::new(self.at.lsn), &mut raw).unwrap();
        assert!(piece.is_whole);
        (self.at.lsn, self.lose_up_to(piece.next.get()).await)
    }

    /// Ships a gap up to a position, which it returns.
    pub(crate) async fn lose_up_to(&mut self, end: u64) -> u64 {
        let link = Link { start: self.at.lsn, end, file: None, content: Hash::default() };
        let draft = Header::draft(Kind::Gap, self.generation, self.at.chain, link);
        let built = object::gap(self.stamped(draft));
        self.put(&built).await;
        self.at = Point { lsn: end, chain: built.header.after };
        end
    }

    /// Ends the generation; the next one begins at `fork`.
    pub(crate) async fn seal(&mut self, fork: u64) {
        let (start, before) = (self.at.lsn, self.at.chain);
        let link = Link { start, end: start, file: None, content: Hash::default() };
        let draft = Header::draft(Kind::Seal, self.generation, before, link);
        let built = object::seal(Header { fork, ..self.stamped(draft) });
        self.put(&built).await;
        self.at = Point { lsn: fork, chain: hash(&built.header.encode()) };
        self.generation += 1;
        self.chunks.clear();
    }

    /// Says that a generation is closed, at the place where it was sealed.
    pub(crate) async fn close(&mut self, generation: u32, at: Point) {
        let link = Link { start: at.lsn, end: at.lsn, file: None, content: Hash::default() };
        let draft = Header::draft(Kind::Closed, generation, at.chain, link);
        let built = object::closed(self.stamped(draft));
        self.put(&built).await;
    }

    /// Deletes chunks.
    pub(crate) async fn delete(&self, chunks: &[(Header, Vec<u8>)]) {
        for (header, _) in chunks {
            self.store.delete(&header.key().unwrap().to_string()).await.unwrap();
        }
    }
}

/// Every object of the store.
pub(crate) async fn objects(store: &dyn Store) -> Vec<(String, Bytes)> {
    let mut all = Vec::new();
    for meta in store.list("", None).await.unwrap() {
        all.push((meta.key.clone(), store.get(&meta.key).await.unwrap().unwrap()));
    }
    all
}

/// All records of a log.
pub(crate) fn records(log: &Log) -> Vec<(u64, Vec<u8>)> {
    let mut reader = log.reader(Lsn::ZERO).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push((record.lsn.get(), record.payload.to_vec()));
    }
    all
}
