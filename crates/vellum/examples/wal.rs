//! A durable map on a write-ahead log: `cargo run --release --example wal -- DIR`.
//!
//! The whole life of a database's log, to be copied: recover from the checkpoint, commit by several
//! threads, make a checkpoint when enough bytes have come, trim. The map lives in the memory of one
//! process; the directory holds
//!
//! ```text
//! log/        the log: a record for each transaction
//! snapshot    the map as it was at some position of the log, and that position
//! ```
//!
//! The promise: a transaction for which [`Map::commit`] has returned is there after `kill -9` and
//! after a power cut, and every transaction is there as a whole or not at all.

use std::collections::BTreeMap;
use std::error::Error;
use std::fs::File;
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::{fs, io, thread};

use vellum::{Log, Lsn, Options, Tuning};

pub(crate) type Result<T> = std::result::Result<T, Box<dyn Error + Send + Sync>>;
type Pairs = BTreeMap<String, String>;

/// One change: a key and its new value, or `None` to remove it.
pub(crate) type Change = (String, Option<String>);

pub(crate) struct Map {
    dir: PathBuf,
    log: Log,
    data: Mutex<Data>,
    /// Held while a checkpoint is made.
    checkpoint: Mutex<()>,
}

struct Data {
    pairs: Pairs,
    /// The record that was applied last.
    newest: Lsn,
}

impl Map {
    /// Opens the map in `dir`. `options` are those of its log.
    pub(crate) fn open(dir: &Path, options: &Options) -> Result<Map> {
        fs::create_dir_all(dir)?;
        // This keeps a second process out, and cuts off what a power cut has torn.
        let log = options.open(dir.join("log"))?;
        let (from, mut pairs) = load_snapshot(dir)?.unwrap_or((Lsn::ZERO, Pairs::new()));
        if from < log.checkpoint().lsn() {
            // Without this check, a lost snapshot would look like an empty map.
            return Err("the snapshot is missing, or older than the log's checkpoint".into());
        }
        if log.stat()?.lost.is_some_and(|(_, end)| end > from) {
            return Err("changes were lost that the snapshot does not have".into());
        }
        replay(&log, from, &mut pairs)?;
        // A killed process may have left records that are in the log but not durable. From here on
        // the map shows them, so no power cut may take them back.
        log.sync()?;
        let data = Mutex::new(Data { pairs, newest: Lsn::ZERO });
        Ok(Map { dir: dir.to_path_buf(), log, data, checkpoint: Mutex::new(()) })
    }

    /// Makes all `changes` or none. When it returns, they survive a power cut.
    ///
    /// After an error of the commit the outcome is not known before the map is opened again.
    pub(crate) fn commit(&self, changes: &[Change]) -> Result<()> {
        let record = encode(changes);
        let mut data = self.data();
        // Under the lock, so that the map changes in the order of the log. This takes less than a
        // microsecond; the device is waited for without the lock.
        let lsn = self.log.append(&record)?;
        apply(&mut data.pairs, changes);
        data.newest = lsn;
        drop(data);
        // All threads that wait here share one write of the device.
        self.log.commit(lsn)?;
        if self.log.checkpoint().is_due() {
            self.checkpoint_unless_another_does();
        }
        Ok(())
    }

    /// The value of a key, which may be one that another thread is committing at this moment.
    pub(crate) fn get(&self, key: &str) -> Option<String> {
        self.data().pairs.get(key).cloned()
    }

    /// Stores the map as a snapshot, and drops the part of the log that is in it.
    pub(crate) fn checkpoint(&self) -> Result<()> {
        let _alone = self.checkpoint.lock().unwrap_or_else(PoisonError::into_inner);
        self.checkpoint_alone()
    }

    /// The thread that finds a checkpoint due makes it; the others continue.
    fn checkpoint_unless_another_does(&self) {
        let Ok(_alone) = self.checkpoint.try_lock() else { return };
        if self.log.checkpoint().is_due()
            && let Err(error) = self.checkpoint_alone()
        {
            // The transaction is durable all the same, and the next one tries again.
            eprintln!("no checkpoint was made: {error}");
        }
    }

    /// Death at any step leaves a snapshot and a log that reaches back to it:
    ///
    /// 1. the content of the copy becomes durable in the log;
    /// 2. the snapshot becomes durable under another name, then takes the place of the old one;
    /// 3. the log remembers the checkpoint, so that a lost snapshot is noticed;
    /// 4. the log is trimmed.
    fn checkpoint_alone(&self) -> Result<()> {
        let (pairs, newest, end) = {
            let data = self.data();
            // The copy has every record before this position, and maybe some behind it. To apply
            // those once more does no harm.
            (data.pairs.clone(), data.newest, self.log.published())
        };
        self.log.commit(newest)?;
        store_snapshot(&self.dir, end, &pairs)?;
        self.log.checkpoint().set(end)?;
        self.log.trim(end)?;
        Ok(())
    }

    fn data(&self) -> MutexGuard<'_, Data> {
        self.data.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Applies every record from `from` on.
fn replay(log: &Log, from: Lsn, pairs: &mut Pairs) -> Result<()> {
    let mut reader = log.reader(from)?;
    while let Some(record) = reader.next()? {
        let changes = decode(record.payload).ok_or("a record is not of this map")?;
        apply(pairs, &changes);
    }
    Ok(())
}

fn apply(pairs: &mut Pairs, changes: &[Change]) {
    for (key, value) in changes {
        match value {
            Some(value) => pairs.insert(key.clone(), value.clone()),
            None => pairs.remove(key),
        };
    }
}

/// Each change: the length of its key, 1 + the length of its value or 0 for none, key, value.
fn encode(changes: &[Change]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (key, value) in changes {
        let value_len = value.as_ref().map_or(0, |value| 1 + value.len() as u32);
        bytes.extend((key.len() as u32).to_le_bytes());
        bytes.extend(value_len.to_le_bytes());
        bytes.extend(key.as_bytes());
        bytes.extend(value.as_deref().unwrap_or_default().as_bytes());
    }
    bytes
}

/// The changes that were encoded; `None` for bytes that are no transaction.
fn decode(mut bytes: &[u8]) -> Option<Vec<Change>> {
    let mut changes = Vec::new();
    while !bytes.is_empty() {
        let (key_len, value_len) = (take_u32(&mut bytes)?, take_u32(&mut bytes)?);
        let key = take_text(&mut bytes, key_len)?;
        let value = match value_len.checked_sub(1) {
            Some(len) => Some(take_text(&mut bytes, len)?),
            None => None,
        };
        changes.push((key, value));
    }
    Some(changes)
}

fn take_u32(bytes: &mut &[u8]) -> Option<u32> {
    let (number, rest) = bytes.split_first_chunk()?;
    *bytes = rest;
    Some(u32::from_le_bytes(*number))
}

fn take_text(bytes: &mut &[u8], len: u32) -> Option<String> {
    String::from_utf8(bytes.split_off(..len as usize)?.to_vec()).ok()
}

/// Stores a snapshot; it is durable, and in the place of the one before, when this returns.
///
/// The file: position (u64), checksum of the rest (u32), the pairs as a transaction.
fn store_snapshot(dir: &Path, end: Lsn, pairs: &Pairs) -> io::Result<()> {
    let changes: Vec<Change> = pairs.iter().map(|(k, v)| (k.clone(), Some(v.clone()))).collect();
    let body = encode(&changes);
    let new = dir.join("snapshot.new");
    let mut file = File::create(&new)?;
    file.write_all(&end.get().to_le_bytes())?;
    file.write_all(&crc32c::crc32c(&body).to_le_bytes())?;
    file.write_all(&body)?;
    file.sync_all()?;
    fs::rename(&new, dir.join("snapshot"))?;
    // The name is durable when its directory is.
    File::open(dir)?.sync_all()
}

/// The newest snapshot and the position that it reaches to; `None` if there never was one.
fn load_snapshot(dir: &Path) -> Result<Option<(Lsn, Pairs)>> {
    let bytes = match fs::read(dir.join("snapshot")) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        read => read?,
    };
    let snapshot = decode_snapshot(&bytes).ok_or("the snapshot is damaged")?;
    Ok(Some(snapshot))
}

fn decode_snapshot(bytes: &[u8]) -> Option<(Lsn, Pairs)> {
    let (end, rest) = bytes.split_first_chunk()?;
    let (check, body) = rest.split_first_chunk()?;
    if crc32c::crc32c(body) != u32::from_le_bytes(*check) {
        return None;
    }
    let mut pairs = Pairs::new();
    apply(&mut pairs, &decode(body)?);
    Some((Lsn::new(u64::from_le_bytes(*end)), pairs))
}

/// The log of the map: a checkpoint after each 4 MiB.
fn options() -> Options {
    Options::wal().tuning(Tuning::new().checkpoint_after_bytes(4 << 20))
}

/// Transactions of one thread, numbered from 1: each sets the thread's counter and changes another
/// key. Continues behind the last one that is there, and prints the number of each that is durable.
pub(crate) fn count(map: &Map, thread: u64, until: u64, say: impl Fn(u64)) -> Result<()> {
    let done = map.get(&counter(thread)).map_or(Ok(0), |number| number.parse())?;
    for number in done + 1..=until {
        map.commit(&transaction(thread, number))?;
        say(number);
    }
    Ok(())
}

pub(crate) fn counter(thread: u64) -> String {
    format!("thread {thread}")
}

/// The changes of a thread's transaction. Each fifth removes a key.
pub(crate) fn transaction(thread: u64, number: u64) -> Vec<Change> {
    let key = format!("thread {thread}, key {}", number % 64);
    let value = (!number.is_multiple_of(5)).then(|| format!("value {number}"));
    vec![(counter(thread), Some(number.to_string())), (key, value)]
}

fn main() -> Result<()> {
    let dir = std::env::args_os().nth(1).ok_or("usage: wal DIR")?;
    let map = Map::open(dir.as_ref(), &options())?;
    thread::scope(|scope| {
        let map = &map;
        let count = |thread| move || count(map, thread, 10_000, |_| ());
        let threads: Vec<_> = (0..8).map(|thread| scope.spawn(count(thread))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().expect("it does not panic"))
    })?;
    // So that the next start has nothing to replay.
    map.checkpoint()?;
    let commits = map.log.stat()?.commits;
    println!("{} transactions took {} writes of the device", commits.commits, commits.syncs);
    Ok(())
}
