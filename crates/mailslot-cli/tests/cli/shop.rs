//! A folder with a store, and the program in it.

use serde_json::Value;
use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use tempfile::TempDir;

/// A temporary folder, and the URL of a store that is somewhere else.
pub(crate) struct Shop {
    dir: TempDir,
    store: Option<String>,
}

/// What a command did.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Shop {
    pub(crate) fn new() -> Self {
        Self { dir: tempfile::tempdir().unwrap(), store: None }
    }

    /// One whose commands all use the store at `url`.
    pub(crate) fn with_store(url: String) -> Self {
        Self { store: Some(url), ..Self::new() }
    }

    pub(crate) fn path(&self, file: &str) -> PathBuf {
        self.dir.path().join(file)
    }

    pub(crate) fn write(&self, file: &str, content: impl AsRef<[u8]>) {
        std::fs::write(self.path(file), content).unwrap();
    }

    pub(crate) fn read(&self, file: &str) -> String {
        std::fs::read_to_string(self.path(file)).unwrap()
    }

    /// The program, with nothing inherited that could change what it does.
    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_mailslot"));
        clean(&mut command, self.dir.path());
        command.envs(self.store.iter().map(|url| ("MAILSLOT_STORE", url))).args(arguments);
        command
    }

    pub(crate) fn run(&self, arguments: &[&str]) -> Ran {
        self.run_with(arguments, b"")
    }

    pub(crate) fn run_with(&self, arguments: &[&str], input: impl AsRef<[u8]>) -> Ran {
        ran(self.command(arguments), input.as_ref())
    }

    /// Runs it and expects success; gives what it printed.
    pub(crate) fn ok(&self, arguments: &[&str]) -> String {
        self.run(arguments).ok().out
    }

    /// The same with `--json`; gives the document.
    pub(crate) fn json(&self, arguments: &[&str]) -> Value {
        serde_json::from_str(&self.ok(&[&["--json"], arguments].concat())).unwrap()
    }

    /// Accepts a JSON payload; gives the id.
    pub(crate) fn accept(&self, contract: &str, flags: &[&str], payload: &str) -> String {
        let arguments = [&["--json", "accept", "--contract", contract], flags].concat();
        let receipt = self.run_with(&arguments, payload).ok();
        let receipt: Value = serde_json::from_str(&receipt.out).unwrap();
        receipt["id"].as_str().unwrap().to_owned()
    }

    /// Accepts messages of contract `a@1`, numbered from 0.
    pub(crate) fn accept_many(&self, count: u32) {
        let line = |n| format!("{{\"contract\":\"a@1\",\"payload\":{n}}}");
        let lines: Vec<_> = (0..count).map(line).collect();
        self.run_with(&["accept", "--ndjson"], lines.join("\n")).ok();
    }

    /// Handles all that is due with a command for every contract; gives the counts.
    pub(crate) fn drain(&self, command: &str, flags: &[&str]) -> Value {
        let route = format!("*=exec:{command}");
        self.json(&[&["work", "--drain", "--route", &route], flags].concat())
    }

    /// What `messages show` says.
    pub(crate) fn show(&self, id: &str) -> Value {
        self.json(&["messages", "show", id])
    }

    /// Makes a dead letter; gives the id.
    pub(crate) fn dead_letter(&self, contract: &str, flags: &[&str]) -> String {
        let id = self.accept(contract, flags, "1");
        self.drain("exit 65", &[]);
        assert_eq!(self.show(&id)["status"], "dead_lettered");
        id
    }

    /// Makes a named pipe. Opening one end waits for the other: a signal between processes.
    pub(crate) fn fifo(&self, name: &str) {
        assert!(Command::new("mkfifo").arg(self.path(name)).status().unwrap().success());
    }

    /// Waits until somebody writes to a named pipe, and until all that have it are gone or closed it.
    pub(crate) fn wait_for(&self, fifo: &str) -> String {
        let mut text = String::new();
        File::open(self.path(fifo)).unwrap().read_to_string(&mut text).unwrap();
        text
    }

    /// Waits until somebody reads a named pipe, and lets it go on.
    pub(crate) fn let_go(&self, fifo: &str) {
        let mut pipe = File::options().write(true).open(self.path(fifo)).unwrap();
        pipe.write_all(b"go\n").unwrap();
    }
}

/// Removes what would change the program, and its commands, from outside.
pub(crate) fn clean(command: &mut Command, dir: &Path) {
    command.current_dir(dir).env_remove("RUST_LOG").env_remove("NO_COLOR").env_remove("MAILSLOT_STORE");
}

/// Runs a command to its end.
pub(crate) fn ran(mut command: Command, input: &[u8]) -> Ran {
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A program that ends without reading everything breaks the pipe.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().unwrap()
    });
    Ran {
        code: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).unwrap(),
        err: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Ran {
    #[track_caller]
    pub(crate) fn ok(self) -> Self {
        assert_eq!(self.code, 0, "{self:#?}");
        self
    }

    /// Expects an exit code and one line of error that says all of `words`.
    #[track_caller]
    pub(crate) fn fails(self, code: i32, words: &[&str]) -> Self {
        assert_eq!(self.code, code, "{self:#?}");
        let errors: Vec<_> = self.err.lines().filter(|line| line.starts_with("error: ")).collect();
        assert_eq!(errors.len(), 1, "{self:#?}");
        for word in words {
            assert!(errors[0].contains(word), "no {word:?} in {:?}", errors[0]);
        }
        self
    }

    /// Every line of output as JSON.
    #[track_caller]
    pub(crate) fn lines(&self) -> Vec<Value> {
        self.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }
}
