//! Writing a log from its shipped objects.

use std::path::Path;

use tokio::sync::mpsc;
use vellum::ship::{FileName, LogShape, RestoreOptions, Restorer};
use vellum::{Layout, Lsn, Options};

use super::extent::{Extent, Until};
use super::fetch::Fetched;
use super::pieces::Pieces;
use super::{ReadError, Remote};
use crate::decide::{Piece, Plan};
use crate::object::{Hash, Header, Kind};

/// Pieces that wait for the writer.
const WAITING: usize = 1;

/// The log to restore, and the options of that.
#[derive(Clone, Copy, Debug)]
pub struct Restore {
    /// How far.
    pub until: Until,
    /// Whether to continue a restore that did not finish.
    pub resume: bool,
    /// The most requests in flight.
    pub jobs: usize,
    /// Whether a text log is at the path of a file.
    pub file_link: bool,
}

/// Hears how far a restore has come: bytes of the log that are written, of how many.
pub type Progress<'a> = dyn FnMut(u64, u64) + Send + 'a;

/// The result of a restore, and the range of it that was verified.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Restored {
    /// The first position.
    pub begin: u64,
    /// The end of the written range.
    pub written_end: u64,
    /// Bytes of the log up to there.
    pub bytes: u64,
    /// The end of the log as it opens: behind its last whole record.
    pub end: u64,
    /// The end of the stored log, which is later if the caller wanted less.
    pub stored_end: u64,
    /// The newest generation.
    pub generation: u32,
    /// The seals on the way. One whose `fork` is before its `start` says that the log was cut
    /// there.
    pub seals: Vec<Header>,
    /// Objects that were fetched; each was verified with its hashes.
    pub objects: u64,
    /// The ranges that were lost before they were shipped.
    pub gaps: Vec<(u64, u64)>,
    /// The chain at the end of the stored log, which covers everything before.
    pub chain: Hash,
    /// Records (lines of a text log) that are whole, by their checksums.
    pub records: u64,
    /// Damaged places. None, unless the log was damaged when it was shipped.
    pub damage: Vec<String>,
    /// Where the log begins as it opens, if the original had been trimmed up to there. The records
    /// before that are stored, and a restore to an earlier position has them.
    pub trimmed_to: Option<u64>,
}

/// Restores a log into a directory that is empty or not there. That all of it is stored is checked
/// before anything is written. When it returns, the log is durable, was recovered, and every byte
/// of it was verified.
pub async fn restore(
    remote: &Remote,
    dir: &Path,
    how: Restore,
    progress: &mut Progress<'_>,
) -> Result<Restored, ReadError> {
    let plan = remote.plan().await?;
    let extent = Extent::of(&plan, how.until, remote.store().as_ref()).await?;
    let restorer = begin(remote, dir, &plan, &extent, how)?;
    let (objects, restorer) = write_all(remote, restorer, &extent, how.jobs, progress).await?;
    let written_end = tokio::task::spawn_blocking(|| restorer.finish()).await.expect("no panic")?;
    let dir = dir.to_path_buf();
    let Opened { begin, end, records, damage } =
        tokio::task::spawn_blocking(move || verify(&dir)).await.expect("no panic")?;
    Ok(Restored {
        begin: extent.begin,
        written_end: written_end.get(),
        bytes: extent.bytes_before(written_end.get()),
        end,
        stored_end: plan.end.lsn,
        generation: plan.generation,
        gaps: extent.gaps(),
        chain: plan.end.chain,
        seals: plan.seals,
        objects,
        records,
        damage,
        trimmed_to: (begin > extent.begin).then_some(begin),
    })
}

fn begin(
    remote: &Remote,
    dir: &Path,
    plan: &Plan,
    extent: &Extent,
    how: Restore,
) -> Result<Restorer, ReadError> {
    let cuts = plan.seals.iter().filter(|seal| seal.fork < seal.start).map(|seal| seal.fork);
    let cut = cuts.chain(extent.is_cut.then_some(extent.end)).min();
    let shape = match cut {
        Some(cut) => remote.shape().clone().cut_at(Lsn::new(cut)),
        None => remote.shape().clone(),
    };
    let mut options = RestoreOptions::new();
    options.file_link = how.file_link;
    if how.resume {
        let restorer = Restorer::resume(dir, &shape, &options)?;
        check_room(dir, &shape, extent, restorer.position().get())?;
        return Ok(restorer);
    }
    check_room(dir, &shape, extent, extent.begin)?;
    Ok(Restorer::create(dir, &shape, Lsn::new(extent.begin), &options)?)
}

/// Refuses a log that has no room here, and impossible gaps, before anything is written.
fn check_room(dir: &Path, shape: &LogShape, extent: &Extent, from: u64) -> Result<(), ReadError> {
    let missing = extent.pieces.iter().filter(|piece| piece.until > from);
    let bytes = missing.map(|piece| piece.header.raw_bytes).fold(0, u64::saturating_add);
    let lsn = |(start, end): (u64, u64)| (Lsn::new(start.max(from)), Lsn::new(end.max(from)));
    let gaps: Vec<(Lsn, Lsn)> = extent.gaps().into_iter().map(lsn).collect();
    Ok(Restorer::check_room(dir, shape, bytes, &gaps)?)
}

/// Fetches and writes at the same time; returns how many objects there were.
async fn write_all(
    remote: &Remote,
    restorer: Restorer,
    extent: &Extent,
    jobs: usize,
    progress: &mut Progress<'_>,
) -> Result<(u64, Restorer), ReadError> {
    let position = restorer.position().get();
    let mut pieces = Pieces::new(remote, extent, position, jobs);
    let (sender, receiver) = mpsc::channel(WAITING);
    let (layout, cut) = (remote.shape().layout(), extent.is_cut.then_some(extent.end));
    let writer = tokio::task::spawn_blocking(move || write(restorer, layout, receiver, cut));
    let (mut objects, all) = (0, extent.bytes());
    let mut done = extent.bytes_before(position);
    while let Some(fetched) = pieces.next().await? {
        objects += u64::from(fetched.piece.header.kind != Kind::Gap);
        let piece = &fetched.piece;
        done += piece.bytes_before(piece.until) - piece.bytes_before(position);
        progress(done, all);
        if sender.send(fetched).await.is_err() {
            // The writer says why.
            break;
        }
    }
    drop(sender);
    Ok((objects, writer.await.expect("writing does not panic")?))
}

/// Writes what comes. A text log that was cut ends with a whole line.
fn write(
    mut restorer: Restorer,
    layout: Layout,
    mut pieces: mpsc::Receiver<Fetched>,
    cut: Option<u64>,
) -> Result<Restorer, ReadError> {
    while let Some(Fetched { piece, mut raw, .. }) = pieces.blocking_recv() {
        if layout == Layout::Text && cut == Some(piece.until) {
            let line = raw.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
            raw.truncate(line);
        }
        put(&mut restorer, layout, &piece, &raw)?;
    }
    Ok(restorer)
}

fn put(
    restorer: &mut Restorer,
    layout: Layout,
    piece: &Piece,
    raw: &[u8],
) -> Result<(), ReadError> {
    let Piece { header, until } = piece;
    if header.kind == Kind::Gap {
        return Ok(restorer.gap(Lsn::new(*until))?);
    }
    if let (Layout::Text, Some(mark)) = (layout, header.file) {
        let start = Lsn::new(header.start);
        restorer.file(FileName::new(start, mark.time, mark.is_continuation))?;
    }
    // A restore that continues, or a plan that was made again, may begin inside of the piece.
    let done = restorer.position().get().saturating_sub(header.start).min(raw.len() as u64);
    Ok(restorer.write(Lsn::new(header.start + done), &raw[done as usize..])?)
}

/// A restored log, as recovery opens it.
struct Opened {
    begin: u64,
    end: u64,
    records: u64,
    damage: Vec<String>,
}

/// Opens the log, which recovers it, and reads all of it.
fn verify(dir: &Path) -> Result<Opened, ReadError> {
    let log = Options::default().open(dir)?;
    let report = log.verify()?;
    let damage = report.damage.iter().map(|damage| {
        format!(
            "{}:{}: lsn {}: {}",
            damage.path.display(),
            damage.offset,
            damage.lsn,
            damage.reason
        )
    });
    Ok(Opened {
        begin: log.begin().get(),
        end: report.end.get(),
        records: report.records,
        damage: damage.collect(),
    })
}
