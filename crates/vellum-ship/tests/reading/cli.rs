//! The commands, as they are typed.

use std::path::Path;
use std::process::{Command, Output};

use vellum::Layout;
use vellum_ship::store::open_or_create;

use crate::hand::{Hand, append, log, records};
use crate::server::{SECRET, USER, versitygw};

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_vellum-ship")).args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// A text log of 30 lines, shipped below this directory.
async fn shipped(dir: &Path, name: &str) -> String {
    let log = log(&dir.join(name), Layout::Text);
    append(&log, 28);
    let url = format!("file://{}", dir.join("store").join(name).display());
    std::fs::create_dir_all(dir.join("store")).unwrap();
    let mut hand = Hand::begin_in(&log, open_or_create(&url).unwrap()).await;
    hand.ship(400).await;
    url
}

#[tokio::test]
async fn every_command_reads_the_log() {
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path(), "app").await;
    let all = records(&vellum::Options::default().open(dir.path().join("app")).unwrap());
    let lines: Vec<u8> = all.iter().flat_map(|(_, line)| line.clone()).collect();
    let cat = run(&["cat", &url]);
    assert!(cat.stdout == lines && cat.status.success(), "{}", text(&cat.stderr));
    let tail = run(&["tail", "-n", "2", &url]);
    let last: Vec<u8> = all[all.len() - 2..].iter().flat_map(|(_, line)| line.clone()).collect();
    assert_eq!(text(&tail.stdout), text(&last));
    let from = run(&["cat", "--json", "--from", &all[5].0.to_string(), &url]);
    assert_eq!(text(&from.stdout).lines().count(), all.len() - 5);
    assert!(text(&from.stdout).starts_with(&format!("{{\"lsn\":{}", all[5].0)));
    let stat = text(&run(&["stat", "--json", &url]).stdout);
    assert!(stat.contains("\"layout\":\"text\"") && stat.contains("\"generation\":0"), "{stat}");
    let verify = run(&["verify", &url]);
    assert!(text(&verify.stderr).contains("all good"), "{}", text(&verify.stderr));
    let copy = dir.path().join("copy").display().to_string();
    let restore = run(&["restore", &url, &copy]);
    assert_eq!(restore.status.code(), Some(0), "{}", text(&restore.stderr));
    assert!(text(&restore.stderr).contains("verified: the hash of each object"));
    assert_eq!(run(&["restore", &url, &copy]).status.code(), Some(1), "not empty");
    // At the path of a file, as the log is that `vellum append` makes.
    assert!(std::fs::read(&copy).unwrap() == lines && dir.path().join("copy.d").is_dir());
    let plain = dir.path().join("plain").join("");
    let restore = run(&["restore", &url, plain.to_str().unwrap()]);
    assert_eq!(restore.status.code(), Some(0), "{}", text(&restore.stderr));
    assert!(plain.is_dir() && !dir.path().join("plain.d").exists());
}

#[tokio::test]
async fn many_logs_are_listed_and_merged_in_the_order_they_were_shipped() {
    let dir = tempfile::tempdir().unwrap();
    for name in ["one", "two"] {
        shipped(dir.path(), name).await;
    }
    let url = format!("file://{}", dir.path().join("store").display());
    let list = text(&run(&["ls", &url]).stdout);
    assert!(list.contains("/store/one") && list.contains("/store/two"), "{list}");
    let cat = text(&run(&["cat", "--names", &url]).stdout);
    assert_eq!(cat.lines().count(), 60);
    // Both were shipped at the same seconds, a chunk a second.
    let names: Vec<&str> = cat.lines().map(|line| line.split('\t').next().unwrap()).collect();
    let changes = names.windows(2).filter(|pair| pair[0] != pair[1]).count();
    assert!(changes > 4, "{changes} changes between the logs");
}

#[tokio::test]
async fn a_gap_in_one_of_many_logs_is_told_by_the_exit_code() {
    let dir = tempfile::tempdir().unwrap();
    shipped(dir.path(), "one").await;
    let log = log(&dir.path().join("two"), Layout::Framed);
    append(&log, 28);
    let url = format!("file://{}", dir.path().join("store/two").display());
    let mut hand = Hand::begin_in(&log, open_or_create(&url).unwrap()).await;
    hand.lose_one(400).await;
    hand.ship(400).await;
    let cat = run(&["cat", &format!("file://{}", dir.path().join("store").display())]);
    let said = text(&cat.stderr);
    assert!(said.contains("were lost before they were shipped"), "{said}");
    assert_eq!(cat.status.code(), Some(3), "{said}");
    for words in [&["stat", &url][..], &["stat", "--json", &url]] {
        let stat = run(words);
        let said = text(&stat.stderr);
        assert!(said.contains("were lost before they were shipped"), "{said}");
        assert_eq!(stat.status.code(), Some(3), "{words:?}: {said}");
        assert!(text(&stat.stdout).contains("gaps"));
    }
}

/// Each log is one chunk: by the times of these, one log would come before the other.
#[tokio::test]
async fn many_logs_with_envelopes_are_merged_by_the_times_of_their_records() {
    let dir = tempfile::tempdir().unwrap();
    let open =
        |name| vellum::Options::default().envelope(true).open(dir.path().join(name)).unwrap();
    let logs = ["one", "two"].map(open);
    let mut want = String::new();
    for number in 0..100 {
        let record = format!("record {number}");
        logs[number / 3 % 2].append(record.as_bytes()).unwrap();
        want += &(record + "\n");
    }
    std::fs::create_dir_all(dir.path().join("store")).unwrap();
    let url = format!("file://{}/store", dir.path().display());
    for (log, name) in logs.iter().zip(["one", "two"]) {
        log.sync().unwrap();
        let store = open_or_create(&format!("{url}/{name}")).unwrap();
        Hand::begin_in(log, store).await.ship(1 << 20).await;
    }
    assert_eq!(text(&run(&["cat", &url]).stdout), want);
    let json = text(&run(&["cat", "--json", &url]).stdout);
    let times = json.lines().map(|line| {
        let record: serde_json::Value = serde_json::from_str(line).unwrap();
        assert!(record["writer"].is_string(), "{line}");
        record["time"].as_str().unwrap().to_string()
    });
    assert!(times.is_sorted());
}

#[tokio::test]
async fn damage_has_its_exit_code_and_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path(), "app").await;
    let chunks = dir.path().join("store/app/g00000000/t");
    let chunk = std::fs::read_dir(chunks).unwrap().next().unwrap().unwrap().path();
    let mut bytes = std::fs::read(&chunk).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    std::fs::write(&chunk, bytes).unwrap();
    let verify = run(&["verify", &url]);
    assert_eq!(verify.status.code(), Some(3), "{}", text(&verify.stderr));
    assert!(text(&verify.stdout).contains(chunk.file_name().unwrap().to_str().unwrap()));
}

#[test]
fn errors_have_their_codes_and_no_secrets() {
    let missing = run(&["stat", "file:///no/such/directory"]);
    assert_eq!(missing.status.code(), Some(1));
    assert!(text(&missing.stderr).contains("/no/such/directory"), "{}", text(&missing.stderr));
    let path = run(&["cat", "/var/log/app"]);
    assert_eq!(path.status.code(), Some(2));
    assert!(text(&path.stderr).contains("file:///var/log/app"), "{}", text(&path.stderr));
    let usage = run(&["restore", "file:///x", "y", "--to", "someday"]);
    assert_eq!(usage.status.code(), Some(2));
}

/// A follower sees records that are shipped later, in the next generation too.
#[tokio::test]
async fn a_follower_prints_what_comes() {
    use std::io::{BufRead, BufReader};
    let dir = tempfile::tempdir().unwrap();
    let log = log(&dir.path().join("app"), Layout::Framed);
    append(&log, 20);
    let url = format!("file://{}", dir.path().join("store").display());
    let mut hand = Hand::begin_in(&log, open_or_create(&url).unwrap()).await;
    hand.ship(400).await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-ship"))
        .args(["tail", "-f", "-n", "1", "--json", &url])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
    let mut next = || {
        let line = lines.next().unwrap().unwrap();
        let value: serde_json::Value = serde_json::from_str(&line).unwrap();
        value["lsn"].as_u64().unwrap()
    };
    let mut all = records(&log);
    assert_eq!(next(), all.last().unwrap().0);
    for round in 0..2 {
        let seen = all.len();
        append(&log, 5);
        all = records(&log);
        hand.ship(400).await;
        for (lsn, _) in &all[seen..] {
            assert_eq!(next(), *lsn, "round {round}");
        }
        hand.seal(hand.at.lsn).await;
    }
    child.kill().unwrap();
    child.wait().unwrap();
}

/// Servers quote the request. Its credentials are hidden there too.
#[test]
fn credentials_are_in_no_error() {
    let Some(server) = versitygw() else { return };
    let secret = "wjalrxutnfemi-k7mdeng-bpxrficyexamplekey";
    let failed = Command::new(env!("CARGO_BIN_EXE_vellum-ship"))
        .args(["stat", &format!("s3://{secret}/x")])
        .env("AZURE_STORAGE_ACCOUNT_KEY", secret)
        .env("AWS_ENDPOINT_URL", format!("http://127.0.0.1:{}", server.port))
        .env("AWS_ALLOW_HTTP", "true")
        .env("AWS_ACCESS_KEY_ID", USER)
        .env("AWS_SECRET_ACCESS_KEY", SECRET)
        .output()
        .unwrap();
    let said = text(&failed.stderr);
    assert!(said.contains("the bucket [hidden] does not exist"), "{said}");
    assert!(!said.contains(secret) && !said.contains(USER) && !said.contains(SECRET), "{said}");
}

/// `tail -f | head -1` ends when the head has had enough, and not with the next record.
#[tokio::test]
async fn a_follower_ends_with_its_reader() {
    let dir = tempfile::tempdir().unwrap();
    let url = shipped(dir.path(), "app").await;
    let mut child = Command::new(env!("CARGO_BIN_EXE_vellum-ship"))
        .args(["cat", "-f", &url])
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn without_its_feature_kafka_is_refused_with_how_to_get_it_and_never_read() {
    let read = run(&["cat", "kafka://127.0.0.1:9/topic"]);
    let said = text(&read.stderr);
    assert!(!read.status.success() && said.contains("a consumer of Kafka"), "{said}");
    if cfg!(not(feature = "kafka")) {
        let sent = run(&["ship", "log", "kafka://127.0.0.1:9/topic"]);
        let said = text(&sent.stderr);
        assert!(said.contains("make ship SHIP_FEATURES=kafka"), "{said}");
        assert_eq!(sent.status.code(), Some(2));
    }
}
