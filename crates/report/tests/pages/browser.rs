//! A headless Chromium to open pages in. It tests nothing itself and knows no page.
//!
//! It is driven by the DevTools protocol over two pipes, which is JSON and a zero byte after each message: less
//! than any library for it would bring, and no port, no download, no runtime.
#![allow(dead_code, reason = "each user is a crate of its own, and none uses all of it")]

use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::Duration;

/// How often something on a page is polled, and how many times before it is given up. No measure of speed.
const POLL: Duration = Duration::from_millis(20);
const POLLS: usize = 3000;
/// The names under which systems have it.
const NAMES: [&str; 3] = ["chromium", "chromium-browser", "google-chrome"];

/// A running browser with one tab.
pub struct Browser {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    calls: u64,
    session: String,
    /// What went wrong on pages: exceptions, messages of errors, refusals of the page's policy.
    pub complaints: Vec<String>,
    /// What pages asked the network for.
    pub requests: Vec<String>,
    _profile: tempfile::TempDir,
}

/// The name under which Chromium can be run here.
pub fn name() -> Option<&'static str> {
    NAMES.into_iter().find(|name| {
        let mut version = Command::new(name);
        version.arg("--version").stdout(Stdio::null()).stderr(Stdio::null());
        version.status().is_ok_and(|status| status.success())
    })
}

/// Checks that nothing went wrong on the page, and that nothing was fetched.
pub fn assert_clean(browser: &mut Browser) {
    assert!(browser.complaints.is_empty(), "{:#?}", browser.complaints);
    let fetched: Vec<&String> = browser
        .requests
        .iter()
        .filter(|url| !["file:", "blob:", "data:"].iter().any(|own| url.starts_with(own)))
        .collect();
    assert!(fetched.is_empty(), "{fetched:?}");
}

impl Browser {
    /// Starts `program`.
    pub fn start(program: &str) -> Self {
        let profile = tempfile::tempdir().unwrap();
        // The browser reads from descriptor 3 and writes to 4; the shell puts our two pipes there.
        let mut process = Command::new("sh")
            .args([
                "-c",
                "exec \"$@\" 3<&0 4>&1 1>&2",
                "sh",
                program,
                "--headless",
                "--remote-debugging-pipe",
            ])
            .args([
                "--no-sandbox",
                "--disable-gpu",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--no-first-run",
            ])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let (input, output) = (process.stdin.take().unwrap(), BufReader::new(process.stdout.take().unwrap()));
        let (calls, session) = (0, String::new());
        let (complaints, requests) = (Vec::new(), Vec::new());
        let mut browser =
            Self { process, input, output, calls, session, complaints, requests, _profile: profile };
        let tab = browser.call("Target.createTarget", json!({ "url": "about:blank" }));
        let attached =
            browser.call("Target.attachToTarget", json!({ "targetId": tab["targetId"], "flatten": true }));
        browser.session = attached["sessionId"].as_str().unwrap().to_owned();
        for domain in ["Page", "Runtime", "Log", "Network"] {
            browser.call(&format!("{domain}.enable"), json!({}));
        }
        browser
    }

    /// Has the browser do `method`; what it answers.
    pub fn call(&mut self, method: &str, params: Value) -> Value {
        self.calls += 1;
        let mut message = json!({ "id": self.calls, "method": method, "params": params });
        if !self.session.is_empty() {
            message["sessionId"] = self.session.clone().into();
        }
        self.input.write_all(format!("{message}\0").as_bytes()).unwrap();
        loop {
            let answer = self.next();
            if answer["id"] == self.calls {
                assert!(answer.get("error").is_none(), "{method}: {}", answer["error"]);
                return answer["result"].clone();
            }
        }
    }

    fn next(&mut self) -> Value {
        let mut bytes = Vec::new();
        self.output.read_until(0, &mut bytes).unwrap();
        let message: Value =
            serde_json::from_slice(bytes.strip_suffix(&[0]).expect("the browser is gone")).unwrap();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("Runtime.exceptionThrown") => self.complaints.push(params["exceptionDetails"].to_string()),
            Some("Log.entryAdded") if params["entry"]["level"] == "error" => {
                self.complaints.push(params["entry"].to_string());
            }
            Some("Runtime.consoleAPICalled") if params["type"] == "error" => {
                self.complaints.push(params.to_string());
            }
            Some("Page.javascriptDialogOpening") => self.complaints.push(format!("a dialog: {params}")),
            Some("Network.requestWillBeSent") => {
                self.requests.push(params["request"]["url"].as_str().unwrap_or_default().to_owned());
            }
            _ => {}
        }
        message
    }

    /// Opens the file at `path` and waits until its scripts have run.
    pub fn open(&mut self, path: &Path) {
        self.complaints.clear();
        self.requests.clear();
        self.call("Page.navigate", json!({ "url": format!("file://{}", path.display()) }));
        self.wait_for("document.readyState === 'complete' && location.protocol === 'file:'");
    }

    /// What `expression` comes to on the page; promises are waited for.
    pub fn evaluate(&mut self, expression: &str) -> Value {
        let params = json!({ "expression": expression, "awaitPromise": true, "returnByValue": true });
        let result = self.call("Runtime.evaluate", params);
        assert!(result.get("exceptionDetails").is_none(), "{expression}: {}", result["exceptionDetails"]);
        result["result"]["value"].clone()
    }

    /// Waits until `expression` is true on the page.
    pub fn wait_for(&mut self, expression: &str) {
        for _ in 0..POLLS {
            if self.evaluate(expression) == true {
                return;
            }
            std::thread::sleep(POLL);
        }
        panic!("never: {expression}\n{:#?}", self.complaints);
    }

    /// Gives the page a window of `width` and `height`, as on a phone if `mobile`, and a colour scheme.
    pub fn show_as(&mut self, width: u32, height: u32, mobile: bool, scheme: &str) {
        self.call(
            "Emulation.setDeviceMetricsOverride",
            json!({ "width": width, "height": height, "deviceScaleFactor": 1, "mobile": mobile }),
        );
        self.call(
            "Emulation.setEmulatedMedia",
            json!({ "features": [{ "name": "prefers-color-scheme", "value": scheme }] }),
        );
    }

    /// A picture of the whole page, as PNG in base64.
    pub fn screenshot(&mut self) -> String {
        let picture =
            self.call("Page.captureScreenshot", json!({ "format": "png", "captureBeyondViewport": true }));
        picture["data"].as_str().unwrap().to_owned()
    }

    /// The page as it is printed, as PDF in base64.
    pub fn print(&mut self) -> String {
        let pdf = self.call("Page.printToPDF", json!({ "printBackground": true, "preferCSSPageSize": true }));
        pdf["data"].as_str().unwrap().to_owned()
    }

    /// Moves the pointer to the middle of what `selector` finds.
    pub fn point_at(&mut self, selector: &str) {
        let middle = format!(
            "(() => {{ const e = document.querySelector({selector:?}); e.scrollIntoView({{ block: 'center' }}); \
             const r = e.getBoundingClientRect(); return {{ x: r.x + r.width / 2, y: r.y + r.height / 2 }}; }})()"
        );
        let mut params = self.evaluate(&middle);
        params["type"] = "mouseMoved".into();
        self.call("Input.dispatchMouseEvent", params);
    }

    /// Presses and releases `key`.
    pub fn press(&mut self, key: &str, code: u32, text: &str) {
        for kind in ["keyDown", "keyUp"] {
            let text = if kind == "keyDown" { text } else { "" };
            self.call(
                "Input.dispatchKeyEvent",
                json!({ "type": kind, "key": key, "windowsVirtualKeyCode": code, "text": text }),
            );
        }
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Killing the parent alone would leave its helpers; asked, it ends them.
        self.session.clear();
        let _ = self.input.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0");
        for _ in 0..POLLS {
            if !matches!(self.process.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(POLL);
        }
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
