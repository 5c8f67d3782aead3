//! Restoring: the same records, whatever the log and whatever became of its objects.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use vellum::{Layout, Log, Options, Tuning};
use vellum_ship::read::{ReadError, Remote, Restore, Restored, Until, find_logs, restore};
use vellum_ship::store::{
    FaultStore, Faults, Meta, PutOutcome, Store, StoreError, open, open_or_create, probe,
};

use crate::hand::{FIRST_SECOND, Hand, append, log, records};
use crate::server::{SECRET, versitygw};

const ALL: Restore = Restore { until: Until::End, resume: false, jobs: 4, file_link: false };

async fn restored(store: Arc<dyn Store>, to: &Path, how: Restore) -> Result<Restored, ReadError> {
    let remote = Remote::open(store).await?;
    restore(&remote, to, how, &mut |_, _| {}).await
}

fn reopened(dir: &Path) -> Log {
    Options::default().open(dir).unwrap()
}

/// The names of the files of a text log, and their content.
fn files(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let all = std::fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let all = all.filter(|path| path.extension().is_some_and(|of| of == "log"));
    all.map(|path| {
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, std::fs::read(&path).unwrap())
    })
    .collect()
}

#[tokio::test]
async fn a_framed_log_comes_back_record_for_record() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 2000);
    let mut hand = Hand::begin(&log).await;
    hand.ship(10_000).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert_eq!(report.objects, hand.chunks.len() as u64);
    assert_eq!(report.damage, [""; 0]);
    assert_eq!(report.records, 2200);
    assert_eq!(report.written_end, log.durable().get());
    assert!(records(&reopened(&copy)) == records(&log));
    assert_eq!(reopened(&copy).id(), log.id(), "it is the same log");
}

#[tokio::test]
async fn a_text_log_comes_back_file_for_file() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Text);
    append(&log, 700);
    log.rotate().unwrap();
    append(&log, 5);
    let mut hand = Hand::begin(&log).await;
    hand.ship(3000).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
    let names = files(&dir.path().join("log"));
    assert!(names.len() > 3);
    assert_eq!(files(&copy).keys().collect::<Vec<_>>(), names.keys().collect::<Vec<_>>());
    assert!(records(&reopened(&copy)) == records(&log));
}

/// A file that is full is continued in another one, whose name says so.
#[tokio::test]
async fn files_that_continue_come_back_with_their_names() {
    let dir = tempfile::tempdir().unwrap();
    let options = Options::mapped_text().tuning(Tuning::new().segment_capacity_bytes(64 << 10));
    let log = options.open(dir.path().join("log")).unwrap();
    append(&log, 900);
    let mut hand = Hand::begin(&log).await;
    hand.ship(30_000).await;
    let copy = dir.path().join("copy");
    restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    let names = files(&dir.path().join("log"));
    assert!(names.keys().any(|name| name.ends_with("-more.log")), "{:?}", names.keys());
    assert!(files(&copy).keys().eq(names.keys()));
}

/// Merged objects replace chunks that are gone; a seal leads to the next generation.
#[tokio::test]
async fn merged_objects_and_generations_are_read_as_one_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 300);
    let mut hand = Hand::begin(&log).await;
    hand.ship(6000).await;
    let in_first = hand.chunks.iter().filter(|(header, _)| header.end <= 2 * 65536).count();
    assert!(in_first > 3, "chunks of one segment");
    hand.merge(0, in_first).await;
    let (old, end) = (hand.chunks[..in_first].to_vec(), hand.at);
    hand.seal(end.lsn).await;
    hand.close(0, end).await;
    hand.delete(&old).await;
    append(&log, 300);
    hand.ship(6000).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert_eq!(report.generation, 1);
    assert!(records(&reopened(&copy)) == records(&log));
}

#[tokio::test]
async fn a_fork_leaves_out_what_was_cut() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 100);
    let mut hand = Hand::begin(&log).await;
    hand.ship(5000).await;
    let fork = hand.chunks[2].0.end;
    hand.seal(fork).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert_eq!((report.written_end, report.seals[0].fork), (fork, fork));
    let expected = records(&log).into_iter().filter(|(lsn, _)| *lsn < fork);
    assert!(records(&reopened(&copy)) == expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_gap_is_reported_and_read_over() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 200);
    let mut hand = Hand::begin(&log).await;
    hand.ship_one(6000).await;
    let gap = hand.lose_one(6000).await;
    hand.ship(6000).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert_eq!(report.gaps, [gap]);
    let expected = records(&log).into_iter().filter(|(lsn, _)| !(gap.0..gap.1).contains(lsn));
    assert!(records(&reopened(&copy)) == expected.collect::<Vec<_>>());
}

#[tokio::test]
async fn a_position_ends_the_log_behind_its_last_whole_record() {
    let dir = tempfile::tempdir().unwrap();
    for layout in [Layout::Framed, Layout::Text] {
        let log = log(&dir.path().join(format!("{layout:?}")), layout);
        append(&log, 100);
        let mut hand = Hand::begin(&log).await;
        hand.ship(2500).await;
        let all = records(&log);
        // In the middle of a record.
        let to = all[60].0 + 8;
        let copy = dir.path().join(format!("copy of {layout:?}"));
        let how = Restore { until: Until::Position(to), ..ALL };
        let report = restored(Arc::clone(&hand.store), &copy, how).await.unwrap();
        assert!(report.stored_end > report.written_end);
        assert!(records(&reopened(&copy)) == all[..60], "{layout:?}");
    }
}

#[tokio::test]
async fn a_time_ends_the_log_with_what_was_shipped_then() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 100);
    let mut hand = Hand::begin(&log).await;
    hand.ship(4000).await;
    hand.merge(0, 4).await;
    for (number, chunk) in [(0, 0), (2, 2), (4, 4)] {
        let copy = dir.path().join(format!("copy {number}"));
        // Chunks are a second apart, merged or not.
        let time = (FIRST_SECOND + 1 + number) * 1_000_000_000 + 5;
        let how = Restore { until: Until::Time(time), ..ALL };
        let report = restored(Arc::clone(&hand.store), &copy, how).await.unwrap();
        assert_eq!(report.written_end, hand.chunks[chunk].0.end);
    }
    let how = Restore { until: Until::Time(5), ..ALL };
    let error = restored(hand.store, &dir.path().join("none"), how).await.unwrap_err();
    assert!(error.to_string().contains("nothing was shipped by that time"), "{error}");
    assert!(!dir.path().join("none").exists(), "nothing is written before the check");
}

#[tokio::test]
async fn a_directory_with_anything_in_it_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 10);
    let mut hand = Hand::begin(&log).await;
    hand.ship(4000).await;
    let error = restored(hand.store, &dir.path().join("log"), ALL).await.unwrap_err();
    assert!(error.to_string().contains("not empty"), "{error}");
}

/// A store in which all chunks of a merged object are removed when it is first read.
struct Retention {
    inner: Arc<dyn Store>,
    doomed: Vec<String>,
    gets: AtomicU64,
}

#[async_trait]
impl Store for Retention {
    async fn create(&self, key: &str, body: Bytes) -> Result<PutOutcome, StoreError> {
        self.inner.create(key, body).await
    }
    async fn get(&self, key: &str) -> Result<Option<Bytes>, StoreError> {
        if key != "log" && self.gets.fetch_add(1, Ordering::Relaxed) == 2 {
            for key in &self.doomed {
                self.inner.delete(key).await?;
            }
        }
        self.inner.get(key).await
    }
    async fn get_range(
        &self,
        key: &str,
        range: std::ops::Range<u64>,
    ) -> Result<Option<Bytes>, StoreError> {
        self.inner.get_range(key, range).await
    }
    async fn head(&self, key: &str) -> Result<Option<Meta>, StoreError> {
        self.inner.head(key).await
    }
    async fn list(&self, prefix: &str, after: Option<&str>) -> Result<Vec<Meta>, StoreError> {
        // Made before the merged object was there, if it is the first one.
        let is_early = self.gets.load(Ordering::Relaxed) == 0;
        let mut list = self.inner.list(prefix, after).await?;
        list.retain(|meta| !(is_early && meta.key.contains("/m/")));
        Ok(list)
    }
    async fn folders(&self, folder: &str) -> Result<Vec<String>, StoreError> {
        self.inner.folders(folder).await
    }
    async fn delete(&self, key: &str) -> Result<(), StoreError> {
        self.inner.delete(key).await
    }
}

/// The races of litestream #1270 and #1307: retention beside a restore.
#[tokio::test]
async fn retention_beside_a_restore_is_noticed_and_planned_around() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 400);
    let mut hand = Hand::begin(&log).await;
    hand.ship(6000).await;
    let in_first = hand.chunks.iter().filter(|(header, _)| header.end <= 2 * 65536).count();
    let old = hand.chunks[..in_first].to_vec();
    let end = hand.at;
    hand.seal(end.lsn).await;
    hand.generation = 0;
    hand.chunks = old.clone();
    hand.merge(0, in_first).await;
    let doomed = old.iter().map(|(header, _)| header.key().unwrap().to_string()).collect();
    let inner = Arc::clone(&hand.store);
    let store = Arc::new(Retention { inner, doomed, gets: AtomicU64::new(0) });
    let copy = dir.path().join("copy");
    restored(store, &copy, Restore { jobs: 1, ..ALL }).await.unwrap();
    assert!(records(&reopened(&copy)) == records(&log));
}

#[tokio::test]
async fn a_store_with_faults_gives_the_same_log() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 150);
    let mut hand = Hand::begin(&log).await;
    hand.ship(6000).await;
    let expected = records(&log);
    for seed in 0..20 {
        let faults = Faults { seed, rate: 4, ..Default::default() };
        let store = Arc::new(FaultStore::new(Arc::clone(&hand.store), faults));
        let copy = dir.path().join(format!("copy {seed}"));
        restored(store, &copy, ALL).await.unwrap();
        assert!(records(&reopened(&copy)) == expected, "seed {seed}");
    }
}

#[tokio::test]
async fn a_log_comes_back_from_a_server() {
    let Some(server) = versitygw() else { return };
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Text);
    append(&log, 500);
    let store = server.s3("s3://bucket/some/app", SECRET);
    assert!(probe(store.as_ref()).await.unwrap().deletes);
    let mut hand = Hand::begin_in(&log, store).await;
    hand.ship(5000).await;
    let copy = dir.path().join("copy");
    let report = restored(Arc::clone(&hand.store), &copy, ALL).await.unwrap();
    assert!(report.damage.is_empty());
    assert!(records(&reopened(&copy)) == records(&log));
    let all = find_logs(server.s3("s3://bucket", SECRET).as_ref()).await.unwrap();
    assert_eq!(all, ["some/app"]);
}

/// The name of the variable that gives a second process its role.
const ROLE: &str = "VELLUM_SHIP_TEST_ROLE";

/// In a second process: restores, and says after each piece how far it is.
pub(crate) fn child_entry() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let [url, dir, resume] = role.split('\n').collect::<Vec<_>>()[..] else { panic!("{role}") };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let how = Restore { resume: resume == "yes", jobs: 2, ..ALL };
    let done = runtime.block_on(async {
        let remote = Remote::open(open(url).unwrap()).await.unwrap();
        restore(&remote, Path::new(dir), how, &mut |done, _| println!("at {done}")).await
    });
    done.unwrap();
    println!("restored");
}

/// A process that is killed at any piece leaves a directory that is refused as a log, and from
/// which another one continues.
#[tokio::test]
async fn a_restore_that_is_killed_goes_on() {
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("log"), Layout::Framed);
    append(&log, 3000);
    let url = format!("file://{}", dir.path().join("store").display());
    let mut hand = Hand::begin_in(&log, open_or_create(&url).unwrap()).await;
    hand.ship(20_000).await;
    let expected = records(&log);
    for (round, pieces) in [1, 4, 9, 15, 22].into_iter().enumerate() {
        let copy = dir.path().join(format!("copy {round}"));
        kill_after(&url, &copy, false, pieces);
        let error = Options::default().open(&copy).unwrap_err();
        assert!(error.to_string().contains("restor"), "{error}");
        kill_after(&url, &copy, true, pieces / 2 + 1);
        let how = Restore { resume: true, ..ALL };
        restored(open(&url).unwrap(), &copy, how).await.unwrap();
        assert!(records(&reopened(&copy)) == expected, "killed after {pieces} pieces");
    }
}

/// Restores in a second process, and kills it when it has said so often where it is.
fn kill_after(url: &str, copy: &Path, resume: bool, pieces: usize) {
    use std::io::{BufRead, BufReader};
    let role = format!("{url}\n{}\n{}", copy.display(), if resume { "yes" } else { "no" });
    let mut child = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "child_entry", "--nocapture"])
        .env(ROLE, role)
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let told = lines.map_while(Result::ok).filter(|line| line.contains("at ")).take(pieces);
    assert_eq!(told.count(), pieces);
    child.kill().unwrap();
    child.wait().unwrap();
}
