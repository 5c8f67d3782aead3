//! Servers that speak the language of a cloud, on loopback, each for one test.

use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use vellum_ship::store::{self, Store};
use vellum_testing::child::die_with_parent;
use vellum_testing::missing::skip;

pub(crate) const USER: &str = "vellumtest";
pub(crate) const SECRET: &str = "vellum-test-secret";
/// Starting one takes seconds where everything runs at once.
const PATIENCE: Duration = Duration::from_secs(60);

/// A server; ends with this value.
pub(crate) struct Server {
    process: Child,
    pub(crate) port: u16,
    _directory: tempfile::TempDir,
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// Where `make ship-servers` installs.
fn tools() -> PathBuf {
    // The tests are in target/ship/debug/deps.
    let test = std::env::current_exe().unwrap();
    let target = test.ancestors().find(|above| above.ends_with("ship")).and_then(Path::parent);
    target.map(|target| target.join("tools")).unwrap_or_default()
}

/// Starts the program on a free port, if it is installed.
pub(crate) fn start(
    program: &str,
    arguments: impl Fn(u16, &Path) -> Vec<String>,
) -> Option<Server> {
    let path = tools().join(program);
    if !path.exists() {
        skip(format!("{} is missing: make ship-servers", path.display()));
        return None;
    }
    let directory = tempfile::tempdir().unwrap();
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut command = Command::new(path);
    command
        .args(arguments(port, directory.path()))
        .env("ROOT_ACCESS_KEY", USER)
        .env("ROOT_SECRET_KEY", SECRET)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null());
    let process = die_with_parent(&mut command).spawn().unwrap();
    let mut server = Server { process, port, _directory: directory };
    server.wait_ready();
    Some(server)
}

impl Server {
    fn wait_ready(&mut self) {
        let deadline = Instant::now() + PATIENCE;
        while TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(self.process.try_wait().unwrap().is_none(), "the server has ended");
            assert!(Instant::now() < deadline, "the server does not listen");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// The environment of a client.
    pub(crate) fn environment(&self, secret: &str) -> Vec<(String, String)> {
        environment(self.port, secret)
    }

    #[allow(dead_code, reason = "not every test binary opens a store itself")]
    pub(crate) fn s3(&self, url: &str, secret: &str) -> std::sync::Arc<dyn Store> {
        store::open_with(url, &self.environment(secret)).unwrap()
    }
}

/// The environment of a user of an S3 server on this port.
pub(crate) fn environment(port: u16, secret: &str) -> Vec<(String, String)> {
    let endpoint = format!("http://127.0.0.1:{port}");
    let pairs = [
        ("AWS_ENDPOINT_URL", endpoint.as_str()),
        ("AWS_ALLOW_HTTP", "true"),
        ("AWS_REGION", "us-east-1"),
        ("AWS_ACCESS_KEY_ID", USER),
        ("AWS_SECRET_ACCESS_KEY", secret),
    ];
    pairs.map(|(name, value)| (name.into(), value.into())).to_vec()
}

/// The gateway of versity, with an empty bucket.
pub(crate) fn versitygw() -> Option<Server> {
    start("bin/versitygw", |port, directory| {
        std::fs::create_dir(directory.join("bucket")).unwrap();
        let root = directory.display().to_string();
        ["--port", &format!("127.0.0.1:{port}"), "posix", &root].map(String::from).to_vec()
    })
}
