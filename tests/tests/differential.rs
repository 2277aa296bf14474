//! Format `hermes` beside the reference agent's own rendering code, over generated results.
//!
//! Same JSON shape, same parts in the same order, same bytes on disk; wording is ours.
//! Every difference belongs to a rule of the specification or the design; the test prints how
//! often each was met and fails on a difference without one.

#[path = "differential/compare.rs"]
mod compare;
#[path = "differential/generate.rs"]
mod generate;
#[path = "differential/reference.rs"]
mod reference;

use std::collections::BTreeMap;

use talaria_testkit::service::Service;

/// Generated results; the acceptance asks for at least 500.
const CASES: usize = 600;

#[tokio::test]
async fn format_hermes_differs_from_the_reference_only_by_rule() {
    let cases = generate::cases(CASES);
    let reference = reference::render_all(&cases);
    let service = Service::builder(talaria_testkit::programs!())
        .unwrap()
        .start()
        .await
        .unwrap();
    let cache = service.cache();

    let mut rules: BTreeMap<&'static str, usize> = BTreeMap::new();
    let mut equal = 0_usize;
    let mut failures = Vec::new();
    for (case, reference) in cases.iter().zip(&reference) {
        let before = reference::files(&cache);
        let answer = service
            .deliver(case.result.clone(), "hermes")
            .await
            .unwrap();
        let ours = reference::with_digests(&answer.text().unwrap(), &cache, &before);
        match compare::compare(case, reference, &ours) {
            Ok(met) if met.is_empty() => equal += 1,
            Ok(met) => {
                for rule in met {
                    *rules.entry(rule).or_default() += 1;
                }
            }
            Err(difference) => failures.push(format!(
                "case {}: {difference}\n  result:    {}\n  reference: {}\n  ours:      {ours}",
                case.id, case.result, reference.rendered
            )),
        }
    }
    println!("{} results, {equal} equal", cases.len());
    println!(
        "{} of them refused by the SDK's own types",
        reference.iter().filter(|r| !r.typed).count()
    );
    for (rule, count) in &rules {
        println!("{count:>5}  {rule}");
    }
    assert!(
        failures.is_empty(),
        "{} results differ without a rule:\n{}",
        failures.len(),
        failures
            .iter()
            .take(12)
            .cloned()
            .collect::<Vec<_>>()
            .join("\n")
    );
}
