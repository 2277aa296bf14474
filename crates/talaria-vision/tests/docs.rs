//! `docs/gate.md` has every cause of a decision.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use talaria_vision::Cause;

#[test]
fn every_cause_has_its_row() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/gate.md");
    let page = fs::read_to_string(path).unwrap();
    let (_, table) = page.split_once("| Cause |").unwrap();
    let rows: BTreeSet<_> = table
        .lines()
        .take_while(|line| line.is_empty() || line.contains('|'))
        .filter_map(|line| {
            let mut cells = line.strip_prefix("| `")?.split("` | ");
            Some((cells.next()?, cells.next()?.split(' ').next()?))
        })
        .collect();
    let causes: BTreeSet<_> = Cause::ALL
        .iter()
        .map(|cause| {
            let opens = matches!(cause, Cause::ModelSees | Cause::OperatorOrdered);
            (cause.as_str(), if opens { "open" } else { "closed" })
        })
        .collect();
    assert_eq!(rows, causes);
}
