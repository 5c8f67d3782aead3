//! A log and a topic for one test, and the messages of a consumer.

use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::time::Duration;

use rdkafka::admin::{AdminClient, AdminOptions, NewTopic, TopicReplication};
use rdkafka::client::DefaultClientContext;
use rdkafka::consumer::{BaseConsumer, Consumer};
use rdkafka::error::KafkaError;
use rdkafka::message::{BorrowedMessage, Headers, Message};
use rdkafka::{ClientConfig, Offset, TopicPartitionList};
use vellum::{Log, Lsn, Options, Tuning};

use crate::broker::Broker;

const SHIP: &str = env!("CARGO_BIN_EXE_vellum-ship");
const PATIENCE: Duration = Duration::from_secs(60);

pub(crate) struct Place {
    dir: tempfile::TempDir,
    pub(crate) brokers: String,
    pub(crate) topic: String,
}

/// A record as a consumer got it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Got {
    pub(crate) payload: Vec<u8>,
    pub(crate) headers: Vec<(String, String)>,
}

impl Got {
    pub(crate) fn header(&self, key: &str) -> Option<&str> {
        self.headers.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
    }
}

impl Place {
    pub(crate) fn new(broker: &Broker, topic: &str, partitions: i32) -> Place {
        let place = Place {
            dir: tempfile::tempdir().unwrap(),
            brokers: broker.address(),
            topic: topic.into(),
        };
        place.make_topic(partitions);
        place
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    pub(crate) fn open(&self, name: &str) -> Log {
        Options::default().open(self.path(name)).unwrap()
    }

    pub(crate) fn url(&self) -> String {
        format!("kafka://{}/{}", self.brokers, self.topic)
    }

    pub(crate) fn command(&self, log: &str) -> Command {
        // It ends with the test, also when that is killed.
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", SHIP, "ship"]).arg(self.path(log)).arg(self.url());
        command
    }

    pub(crate) fn ship(&self, log: &str, options: &[&str]) -> Output {
        self.command(log).arg("--once").args(options).output().unwrap()
    }

    pub(crate) fn spawn(&self, log: &str) -> Child {
        let mut command = self.command(log);
        command.args(["--interval", "5ms"]).stderr(Stdio::piped());
        command.spawn().unwrap()
    }

    pub(crate) fn copy(&self, from: &str, to: &str) {
        let done = Command::new("cp").arg("-a").arg(self.path(from)).arg(self.path(to)).status();
        assert!(done.unwrap().success());
    }

    pub(crate) fn admin<T>(
        &self,
        work: impl AsyncFnOnce(AdminClient<DefaultClientContext>, AdminOptions) -> T,
    ) -> T {
        let mut config = ClientConfig::new();
        let admin: AdminClient<_> =
            config.set("bootstrap.servers", &self.brokers).create().unwrap();
        let options = AdminOptions::new().operation_timeout(Some(PATIENCE));
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(work(admin, options))
    }

    pub(crate) fn make_topic(&self, partitions: i32) {
        self.admin(async |admin, options| {
            let topic = NewTopic::new(&self.topic, partitions, TopicReplication::Fixed(1));
            let made = admin.create_topics([&topic], &options).await.unwrap();
            made.into_iter().next().unwrap().unwrap();
        });
        // The broker says that it is made, and then learns of it.
        self.wait_topic(true);
    }

    pub(crate) fn delete_topic(&self) {
        self.admin(async |admin, options| {
            let deleted = admin.delete_topics(&[&self.topic], &options).await.unwrap();
            deleted.into_iter().next().unwrap().unwrap();
        });
        self.wait_topic(false);
    }

    fn wait_topic(&self, is_there: bool) {
        let consumer = self.consumer("read_committed");
        loop {
            let metadata = consumer.fetch_metadata(Some(&self.topic), PATIENCE).unwrap();
            if metadata.topics()[0].error().is_none() == is_there {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    fn consumer(&self, isolation: &str) -> BaseConsumer {
        let mut config = ClientConfig::new();
        config
            .set("bootstrap.servers", &self.brokers)
            .set("group.id", "a-consumer-that-counts")
            .set("enable.auto.commit", "false")
            .set("enable.partition.eof", "true")
            .set("allow.auto.create.topics", "false")
            .set("isolation.level", isolation);
        config.create().unwrap()
    }

    /// Everything in the partition, as a consumer that reads committed records gets it.
    pub(crate) fn got(&self, partition: i32) -> Vec<Got> {
        self.read(partition, "read_committed")
    }

    pub(crate) fn read(&self, partition: i32, isolation: &str) -> Vec<Got> {
        let consumer = self.consumer(isolation);
        let mut all = TopicPartitionList::new();
        all.add_partition_offset(&self.topic, partition, Offset::Beginning).unwrap();
        consumer.assign(&all).unwrap();
        let mut got = Vec::new();
        loop {
            match consumer.poll(PATIENCE).expect("the partition has an end") {
                Ok(message) => got.push(got_of(&message)),
                Err(KafkaError::PartitionEOF(_)) => return got,
                // A broker that was killed.
                Err(error) if error.rdkafka_error_code().is_some() => {}
                Err(error) => panic!("{error}"),
            }
        }
    }

    pub(crate) fn payloads(&self) -> Vec<Vec<u8>> {
        self.got(0).into_iter().map(|got| got.payload).collect()
    }
}

fn got_of(message: &BorrowedMessage<'_>) -> Got {
    let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
    let headers = message.headers().into_iter().flat_map(|headers| headers.iter());
    Got {
        payload: message.payload().unwrap_or_default().to_vec(),
        headers: headers.map(|one| (one.key.into(), text(one.value.unwrap()))).collect(),
    }
}

pub(crate) fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[track_caller]
pub(crate) fn good(output: &Output) {
    assert!(output.status.success(), "{}", text(output));
}

/// That the command failed, and said this.
#[track_caller]
pub(crate) fn refused(output: &Output, what: &str) {
    assert!(!output.status.success() && text(output).contains(what), "{}", text(output));
}

pub(crate) fn fill(log: &Log, name: &str, count: usize) -> Lsn {
    let mut end = Lsn::ZERO;
    for index in 0..count {
        end = log.append(format!("{name} {index}").as_bytes()).unwrap();
    }
    log.sync().unwrap();
    end
}

pub(crate) fn records(log: &Log) -> Vec<Vec<u8>> {
    let mut reader = log.reader(log.begin()).unwrap();
    let mut all = Vec::new();
    while let Some(record) = reader.next().unwrap() {
        all.push(record.payload.to_vec());
    }
    all
}

/// For a log of several files.
pub(crate) fn small_segments() -> Tuning {
    Tuning::new().segment_capacity_bytes(1 << 16)
}

/// The log's cursor for the topic.
pub(crate) fn cursor(log: &Log) -> vellum::Cursor {
    let cursors = log.cursors().unwrap();
    let ours = cursors.iter().find(|cursor| cursor.name.starts_with("vellum-kafka-"));
    log.cursor(&ours.expect("a cursor").name, Lsn::ZERO).unwrap()
}

/// How far the log was sent, as its cursor says.
pub(crate) fn sent(log: &Log) -> Lsn {
    let cursors = log.cursors().unwrap();
    let ours = cursors.iter().find(|cursor| cursor.name.starts_with("vellum-kafka-"));
    ours.map_or(Lsn::ZERO, |cursor| cursor.lsn)
}

pub(crate) fn signal(child: &Child, signal: rustix::process::Signal) {
    let pid = rustix::process::Pid::from_child(child);
    rustix::process::kill_process(pid, signal).unwrap();
}
