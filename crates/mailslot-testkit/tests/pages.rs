//! What the pages say of tests is true.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Set, it writes the page about crash points instead of comparing it.
const WRITE: &str = "MAILSLOT_WRITE_CRASH_POINTS";

fn page(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs").join(name)
}

fn read(name: &str) -> String {
    std::fs::read_to_string(page(name)).expect("the page is there")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_about_crash_points_says_what_happens() {
    let happens = mailslot_testkit::engine::crash_points_markdown().await;
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(page("crash-points.md"), happens).expect("the page can be written");
        return;
    }
    let says = read("crash-points.md");
    assert_eq!(says, happens, "run the test with {WRITE}=1, and read the difference");
}

/// The names of cases, or of whole files of them, that stand in backticks.
fn named(text: &str) -> BTreeSet<&str> {
    let is_name = |name: &str| name.chars().all(|c| c.is_ascii_lowercase() || "_:/0123456789".contains(c));
    text.split('`').skip(1).step_by(2).filter(|name| name.contains("::") && is_name(name)).collect()
}

#[test]
fn every_case_that_a_page_names_is_there() {
    let engine = mailslot_testkit::engine::cases().into_iter().map(|case| case.name());
    let store = mailslot_testkit::store::cases().into_iter().map(|case| case.name());
    let there: BTreeSet<String> = engine.chain(store).collect();
    for name in ["seed-coverage.md", "consumer-inbox.md"] {
        let text = read(name);
        let named = named(&text);
        assert!(named.len() > 5, "{name} names cases: {named:?}");
        for case in named {
            let bare = case.rsplit('/').next().unwrap_or_default();
            assert!(there.contains(bare), "{name} names `{case}`, which is no case");
        }
    }
}
