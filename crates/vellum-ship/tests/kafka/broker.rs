//! A broker of Apache Kafka on loopback, in KRaft mode.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use vellum_testing::missing::skip;

/// Starting one takes seconds, and much longer where everything runs at once.
const PATIENCE: Duration = Duration::from_secs(120);
/// An id of a cluster, as `StorageTool` wants it.
const CLUSTER: &str = "4L6g3nShT-eMCtK--X86sw";

/// A broker; ends with this value, and with this process.
pub(crate) struct Broker {
    process: Child,
    pub(crate) port: u16,
    config: PathBuf,
    _directory: tempfile::TempDir,
}

/// Where `make kafka-server` installs.
fn jars() -> Option<PathBuf> {
    // The tests are in target/ship/debug/deps.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|above| above.ends_with("ship")).and_then(Path::parent);
    let jars = target.map(|target| target.join("tools/kafka")).unwrap_or_default();
    let has_java = Command::new("java").arg("-version").output().is_ok();
    if !jars.exists() || !has_java {
        skip(format!("{} or Java is missing: make kafka-server", jars.display()));
        return None;
    }
    Some(jars)
}

/// Java with the classes of Kafka, and little memory; it ends when this process does.
fn java(jars: &Path, words: &[&str]) -> Command {
    let classes = format!("{}/*", jars.display());
    let mut command = Command::new("setpriv");
    command.args(["--pdeathsig", "KILL", "java", "-Xmx512m", "-XX:TieredStopAtLevel=1"]);
    command.args(["-cp", &classes]).args(words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The broker that tests share which do not end it. It ends with the process.
pub(crate) fn shared() -> Option<&'static Broker> {
    static SHARED: OnceLock<Option<Broker>> = OnceLock::new();
    // Java would end with the thread that started it.
    SHARED
        .get_or_init(|| {
            let (sender, receiver) = std::sync::mpsc::channel();
            std::thread::spawn(move || {
                let _ = sender.send(Broker::start());
                loop {
                    std::thread::park();
                }
            });
            receiver.recv().unwrap()
        })
        .as_ref()
}

impl Broker {
    /// Starts one on free ports, if it is installed.
    pub(crate) fn start() -> Option<Broker> {
        let jars = jars()?;
        let directory = tempfile::tempdir().unwrap();
        let (port, controller) = (free_port(), free_port());
        let config = directory.path().join("server.properties");
        std::fs::write(&config, properties(port, controller, directory.path())).unwrap();
        let path = config.to_str().unwrap();
        let format = ["kafka.tools.StorageTool", "format", "-t", CLUSTER, "-c", path];
        assert!(java(&jars, &format).status().unwrap().success(), "the storage is not formatted");
        let process = java(&jars, &["kafka.Kafka", path]).spawn().unwrap();
        let mut broker = Broker { process, port, config, _directory: directory };
        broker.wait_ready();
        Some(broker)
    }

    /// Kills it, and starts it again with its stored files.
    pub(crate) fn kill_and_restart(&mut self) {
        self.process.kill().unwrap();
        self.process.wait().unwrap();
        let jars = jars().unwrap();
        let config = self.config.to_str().unwrap();
        self.process = java(&jars, &["kafka.Kafka", config]).spawn().unwrap();
        self.wait_ready();
    }

    fn wait_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(self.process.try_wait().unwrap().is_none(), "the broker has ended");
            assert!(Instant::now() < deadline, "the broker does not listen");
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    pub(crate) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }
}

impl Drop for Broker {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

fn properties(port: u16, controller: u16, directory: &Path) -> String {
    format!(
        "process.roles=broker,controller\n\
         node.id=1\n\
         controller.quorum.voters=1@127.0.0.1:{controller}\n\
         listeners=PLAINTEXT://127.0.0.1:{port},CONTROLLER://127.0.0.1:{controller}\n\
         advertised.listeners=PLAINTEXT://127.0.0.1:{port}\n\
         controller.listener.names=CONTROLLER\n\
         log.dirs={}/data\n\
         offsets.topic.replication.factor=1\n\
         offsets.topic.num.partitions=1\n\
         transaction.state.log.replication.factor=1\n\
         transaction.state.log.min.isr=1\n\
         transaction.state.log.num.partitions=1\n\
         group.initial.rebalance.delay.ms=0\n\
         auto.create.topics.enable=false\n",
        directory.display()
    )
}
