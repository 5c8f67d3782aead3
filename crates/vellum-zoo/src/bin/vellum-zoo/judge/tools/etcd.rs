//! `etcdctl check perf`: a server of etcd on the disk, and a client that writes to it for a minute.

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, ensure};

use super::tool::{Said, found, last_line, run_for};

/// A server that does not answer by then does not begin.
const BEGIN: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(100);
/// The check itself.
const SECONDS: u64 = 60;

pub(super) fn ask(dir: &Path) -> Said {
    let (Some(server), Some(client)) = (found("etcd", &[]), found("etcdctl", &[])) else {
        return Said::nothing();
    };
    checked(&server, &client, dir).unwrap_or_else(|error| Said::failed(format!("{error:#}")))
}

fn checked(server: &Path, client: &Path, dir: &Path) -> anyhow::Result<Said> {
    let server = Server::new(server, dir)?;
    let endpoint = format!("--endpoints={}", server.endpoint);
    let output = run_for(SECONDS, client, [endpoint.as_str(), "check", "perf"])?;
    let said = [output.stdout, output.stderr].concat();
    let read = read(&String::from_utf8_lossy(&said));
    Ok(read.unwrap_or_else(|| Said::failed(last_line(&said))))
}

/// A server until this is dropped.
struct Server {
    child: Child,
    endpoint: String,
}

impl Server {
    fn new(program: &Path, dir: &Path) -> anyhow::Result<Server> {
        // Both are free once, which is as much as can be known.
        let ports = [free_port()?, free_port()?];
        let [endpoint, peer] = ports.map(|port| format!("http://127.0.0.1:{port}"));
        let mut command = Command::new(program);
        command.arg("--data-dir").arg(dir.join("etcd"));
        for (name, value) in [
            ("--listen-client-urls", &endpoint),
            ("--advertise-client-urls", &endpoint),
            ("--listen-peer-urls", &peer),
            ("--initial-advertise-peer-urls", &peer),
        ] {
            command.args([name, value]);
        }
        command.args(["--initial-cluster", &format!("default={peer}"), "--log-level", "error"]);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let child = command.spawn().context("cannot start etcd")?;
        let mut server = Server { child, endpoint };
        let begun = Instant::now();
        while TcpStream::connect((Ipv4Addr::LOCALHOST, ports[0])).is_err() {
            ensure!(server.child.try_wait()?.is_none(), "etcd has ended");
            ensure!(begun.elapsed() < BEGIN, "etcd does not begin");
            thread::sleep(PAUSE);
        }
        Ok(server)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn free_port() -> anyhow::Result<u16> {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).context("no port is free")?;
    Ok(listener.local_addr()?.port())
}

/// The lines about single figures, and the last one about all of them.
fn read(text: &str) -> Option<Said> {
    let lines: Vec<&str> =
        text.lines().map(|line| line.rsplit('\r').next().unwrap_or_default().trim()).collect();
    let word = lines.iter().rfind(|line| ["PASS", "FAIL"].contains(*line))?;
    let slowest = lines.iter().find(|line| line.contains("Slowest request took "));
    let slowest = slowest.and_then(|line| line.rsplit(' ').next()?.strip_suffix('s')?.parse().ok());
    let slowest = slowest.map_or(String::new(), |s: f64| format!(", longest {:.0} ms", s * 1e3));
    Some(Said::new(format!("{word}{slowest}"), None, Some(*word == "PASS")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_decides_and_the_slowest_request_is_told() {
        let good = " 60 / 60 Booooom !  100.00% 1m0s\rPASS: Throughput is 150 writes/s\n\
                    PASS: Slowest request took 0.087509s\nPASS: Stddev is 0.002s\nPASS\n";
        let said = read(good).unwrap();
        assert_eq!((said.text.as_str(), said.is_good), ("PASS, longest 88 ms", Some(true)));
        let bad = "PASS: Throughput is 149 writes/s\nSlowest request took too long: 1.5s\nFAIL\n";
        let said = read(bad).unwrap();
        assert_eq!((said.text.as_str(), said.is_good), ("FAIL, longest 1500 ms", Some(false)));
        assert_eq!(read("Error: context deadline exceeded"), None);
    }
}
