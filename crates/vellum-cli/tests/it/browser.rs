//! A browser without a window, spoken to in its debugging protocol through a pair of pipes.
//!
//! The pipes spare us a port, a web socket, and the crates for them. The browser ends when the
//! pipes are closed, so that nothing is left however a test ends.

use std::io::{BufRead, BufReader, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{self, Receiver};
use std::time::{Duration, Instant};
use std::{env, fs, thread};

use serde_json::{Value, json};
use tempfile::TempDir;

/// How long anything may take, on a machine that has other things to do.
const PATIENCE: Duration = Duration::from_secs(90);

const NAMES: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"];

/// A browser with one page open; ended when dropped.
pub(crate) struct Browser {
    child: Child,
    commands: Option<ChildStdin>,
    messages: Receiver<Value>,
    session: Option<String>,
    last_id: u64,
    /// Events since the page was opened.
    events: Vec<Value>,
    _profile: TempDir,
}

impl Browser {
    /// Starts one; `None` if there is none on this machine.
    pub(crate) fn start() -> Option<Browser> {
        let program = installed()?;
        let profile = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        // It reads commands from descriptor 3 and answers on 4.
        command.args(["-c", r#"exec "$@" 3<&0 4>&1 </dev/null >/dev/null 2>&1"#, "sh"]);
        command.arg(program).args(["--headless", "--remote-debugging-pipe", "--disable-gpu"]);
        command.args([
            "--no-first-run",
            "--disable-background-networking",
            "--disable-dev-shm-usage",
        ]);
        command.arg(format!("--user-data-dir={}", profile.path().display()));
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            command.arg("--no-sandbox");
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
        let commands = child.stdin.take();
        let mut answers = BufReader::new(child.stdout.take().unwrap());
        let (sender, messages) = mpsc::channel();
        thread::spawn(move || {
            let mut message = Vec::new();
            while answers.read_until(0, &mut message).is_ok_and(|len| len > 0) {
                message.pop();
                if sender.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
                message.clear();
            }
        });
        let (session, events) = (None, Vec::new());
        let mut browser =
            Browser { child, commands, messages, session, last_id: 0, events, _profile: profile };
        browser.attach();
        Some(browser)
    }

    fn attach(&mut self) {
        let target = self.call("Target.createTarget", json!({ "url": "about:blank" }));
        let target = json!({ "targetId": target["targetId"], "flatten": true });
        let session = self.call("Target.attachToTarget", target);
        self.session = session["sessionId"].as_str().map(str::to_string);
        for domain in ["Page", "Runtime", "Log", "Network"] {
            self.call(&format!("{domain}.enable"), json!({}));
        }
    }

    /// The answer to a command of the protocol.
    #[track_caller]
    pub(crate) fn call(&mut self, method: &str, params: Value) -> Value {
        self.last_id += 1;
        let mut command = json!({ "id": self.last_id, "method": method, "params": params });
        if let Some(session) = &self.session {
            command["sessionId"] = session.as_str().into();
        }
        let mut bytes = serde_json::to_vec(&command).unwrap();
        bytes.push(0);
        self.commands.as_mut().unwrap().write_all(&bytes).unwrap();
        let id = self.last_id;
        let answer = self.wait(method, |message| message["id"] == id);
        assert!(answer["error"].is_null(), "{method}: {answer}");
        answer["result"].clone()
    }

    /// The first message that `is_it` says is the one; the others are kept as events.
    #[track_caller]
    fn wait(&mut self, what: &str, is_it: impl Fn(&Value) -> bool) -> Value {
        let deadline = Instant::now() + PATIENCE;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            let message = self.messages.recv_timeout(left);
            let message = message.unwrap_or_else(|error| panic!("{what}: {error}"));
            if is_it(&message) {
                return message;
            }
            self.events.push(message);
        }
    }

    /// Opens a file and waits until it is there.
    pub(crate) fn open(&mut self, path: &Path) {
        self.events.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) }));
        let is_loaded = |message: &Value| message["method"] == "Page.loadEventFired";
        if !self.events.iter().any(is_loaded) {
            self.wait("load", is_loaded);
        }
    }

    /// A window of this many points.
    pub(crate) fn resize(&mut self, width: u32, height: u32) {
        let size = json!({
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": false,
        });
        self.call("Emulation.setDeviceMetricsOverride", size);
    }

    /// The claimed preference of the system: `light` or `dark`.
    pub(crate) fn prefer(&mut self, scheme: &str) {
        let features = json!([{ "name": "prefers-color-scheme", "value": scheme }]);
        self.call("Emulation.setEmulatedMedia", json!({ "features": features }));
    }

    /// The value of an expression.
    #[track_caller]
    pub(crate) fn evaluate(&mut self, expression: &str) -> Value {
        let answer = json!({ "expression": expression, "returnByValue": true });
        let answer = self.call("Runtime.evaluate", answer);
        assert!(answer["exceptionDetails"].is_null(), "{answer}");
        answer["result"]["value"].clone()
    }

    /// A key pressed and released.
    pub(crate) fn press_enter(&mut self) {
        let key = |kind| json!({ "type": kind, "key": "Enter", "text": "\r", "windowsVirtualKeyCode": 13 });
        self.call("Input.dispatchKeyEvent", key("keyDown"));
        self.call("Input.dispatchKeyEvent", key("keyUp"));
    }

    /// Errors that the page made, and everything it asked for but itself, since it was opened.
    pub(crate) fn complaints(&mut self) -> Vec<Value> {
        // Events before this answer have been reported.
        self.evaluate("0");
        let is_bad = |event: &&Value| {
            let params = &event["params"];
            let url = params["request"]["url"].as_str().unwrap_or_default();
            match event["method"].as_str().unwrap_or_default() {
                "Runtime.exceptionThrown" => true,
                "Runtime.consoleAPICalled" => params["type"] == "error",
                "Log.entryAdded" => params["entry"]["level"] == "error",
                "Network.requestWillBeSent" => {
                    params["type"] != "Document" && !url.starts_with("data:")
                }
                _ => false,
            }
        };
        self.events.iter().filter(is_bad).cloned().collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // It ends when no process can speak to it any more; if not, it is ended by its number.
        drop(self.commands.take());
        while self.messages.recv_timeout(Duration::from_secs(10)).is_ok() {}
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn installed() -> Option<PathBuf> {
    let path = env::var_os("PATH")?;
    let dirs: Vec<PathBuf> = env::split_paths(&path).collect();
    let all = NAMES.iter().flat_map(|name| dirs.iter().map(move |dir| dir.join(name)));
    all.into_iter().find(|program| program.is_file())
}
