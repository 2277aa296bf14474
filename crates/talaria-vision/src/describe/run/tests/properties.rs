//! What holds whatever the links do.

use proptest::prelude::*;

use super::*;

/// How one attempt ends: how long it takes, as a share of its time, and as what.
#[derive(Clone, Debug)]
struct Ending {
    part: f64,
    verdict: Verdict,
}

fn ending() -> impl Strategy<Value = Ending> {
    let kind = prop::sample::select(FaultKind::ALL);
    let retry = prop::option::of(0_u64..40);
    let failed = (kind, retry).prop_map(|(kind, retry)| {
        let wait = retry.map(Duration::from_secs);
        Verdict::Failed(Fault::new(kind, "").with_retry_after(wait))
    });
    let verdict = prop_oneof![
        1 => Just(Verdict::Answer("a".to_owned())),
        1 => Just(Verdict::Reasoned("r".to_owned())),
        12 => failed,
    ];
    (0.0_f64..1.2, verdict).prop_map(|(part, verdict)| Ending { part, verdict })
}

fn link() -> impl Strategy<Value = Terms> {
    let timeout = 100_u64..200_000;
    (timeout, any::<bool>(), prop::bool::weighted(0.1)).prop_map(|(timeout, repeats, broken)| {
        Terms {
            timeout: Duration::from_millis(timeout),
            repeats,
            unusable: broken.then(|| Fault::new(FaultKind::Misconfigured, "")),
        }
    })
}

/// Attempts under way: when each ends, and as what.
#[derive(Debug, Default)]
struct UnderWay(Vec<(Instant, Attempt, Verdict)>);

impl UnderWay {
    /// Starts one; the actor cuts it off at its time.
    fn start(&mut self, attempt: Attempt, now: Instant, ending: Ending) {
        let time = attempt.until.duration_since(now);
        let end = now + time.mul_f64(ending.part);
        let entry = if end >= attempt.until {
            let timeout = Verdict::failed(FaultKind::Timeout, "");
            (attempt.until, attempt, timeout)
        } else {
            (end, attempt, ending.verdict)
        };
        self.0.push(entry);
        self.0.sort_by_key(|(end, ..)| std::cmp::Reverse(*end));
    }

    /// The first one to end, where it ends by then.
    fn end(&mut self, by: Instant) -> Option<(Instant, Attempt, Verdict)> {
        self.0.pop_if(|(end, ..)| *end <= by)
    }
}

proptest! {
    #[test]
    fn every_run_ends_in_time_and_asks_nobody_too_often(
        links in prop::collection::vec(link(), 0..6),
        total in 1_u64..300_000,
        hedge in prop::option::of(0_u64..20_000),
        endings in prop::collection::vec(ending(), 16),
    ) {
        let chain = links.clone();
        let (total, hedge) = (Duration::from_millis(total), hedge.map(Duration::from_millis));
        let mut stage = Stage::hedged(links, total, hedge);
        let deadline = stage.now + total;
        let mut script = endings.into_iter().cycle();
        let mut under_way = UnderWay::default();
        let mut asked = vec![0_usize; chain.len()];
        let mut was_answered = false;
        for step in 0.. {
            prop_assert!(step < 2_000, "it does not end");
            match stage.run.next(&mut stage.health, stage.now) {
                Order::Ask(attempt) => {
                    prop_assert!(!was_answered);
                    prop_assert!(attempt.until > stage.now && attempt.until <= deadline);
                    let terms = &chain[attempt.link];
                    asked[attempt.link] += 1;
                    prop_assert!(terms.unusable.is_none());
                    let most = if terms.repeats { MOST_ASKED } else { 1 };
                    prop_assert!(asked[attempt.link] <= most);
                    under_way.start(attempt, stage.now, script.next().unwrap());
                    prop_assert!(under_way.0.len() <= MOST_OPEN);
                }
                Order::Wait(until) => {
                    prop_assert!(until > stage.now && until <= deadline);
                    match under_way.end(until) {
                        Some((end, attempt, verdict)) => {
                            stage.now = end;
                            was_answered |= matches!(verdict, Verdict::Answer(_));
                            stage.report(attempt, verdict);
                        }
                        None => stage.now = until,
                    }
                }
                Order::Done => break,
            }
        }
        prop_assert!(stage.now <= deadline);
        let (end, records) = stage.run.finish(&mut stage.health, stage.now);
        prop_assert_eq!(was_answered, matches!(end, End::Answered { .. }));
        for (link, asked) in asked.iter().enumerate() {
            let told: Vec<_> = records.iter().filter(|record| record.link == link).collect();
            prop_assert!(was_answered || !told.is_empty(), "{} is left out", link);
            prop_assert!(told.len() >= *asked);
        }
    }

    #[test]
    fn decision_28_the_last_link_has_its_reserve_whoever_stalls(
        timeouts in prop::collection::vec(1_u64..200, 1..6),
        spare in 0_u64..200,
    ) {
        let links: Vec<Terms> = timeouts.iter().map(|it| terms(seconds(*it))).collect();
        let reserves: u64 = timeouts.iter().map(|it| (*it).min(10)).sum();
        let mut stage = Stage::new(links, seconds(reserves + spare));
        for timeout in &timeouts {
            let attempt = stage.ask();
            let time = attempt.until.duration_since(stage.now);
            prop_assert!(time >= seconds((*timeout).min(10)), "{:?} of {}", time, timeout);
            stage.now = attempt.until;
            stage.report(attempt, failed(FaultKind::Timeout));
        }
    }
}
