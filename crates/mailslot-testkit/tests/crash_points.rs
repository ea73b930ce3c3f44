//! The page about where a subscriber may stop says what happens.

use std::path::Path;

/// Set, it writes the page instead of comparing it.
const WRITE: &str = "MAILSLOT_WRITE_CRASH_POINTS";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_page_says_what_happens() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/crash-points.md");
    let happens = mailslot_testkit::engine::crash_points_markdown().await;
    if std::env::var_os(WRITE).is_some() {
        std::fs::write(&page, happens).expect("the page can be written");
        return;
    }
    let says = std::fs::read_to_string(&page).expect("the page is there");
    assert_eq!(says, happens, "run the test with {WRITE}=1, and read the difference");
}
