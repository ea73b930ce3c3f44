//! The sentences that a wrong `#[derive(Message)]` gets. To see a changed one: `TRYBUILD=overwrite`, then read the diff.

#[test]
fn wrong_messages_do_not_compile_and_say_why() {
    let cases = trybuild::TestCases::new();
    cases.pass("tests/ui/pass/*.rs");
    cases.compile_fail("tests/ui/fail/*.rs");
}
