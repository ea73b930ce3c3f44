//! The program as a shell sees it: output, exit codes, and what it leaves in the store. Each case has a folder of its
//! own.

#![expect(clippy::unwrap_used, reason = "this is a test, helpers included")]

mod accept;
mod bad_input;
mod bench;
mod children;
mod manual;
mod messages;
mod ndjson;
mod operate;
mod postgres;
mod redrive;
mod shop;
mod stores;
mod work;
