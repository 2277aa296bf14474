//! The course of a description, link by link, and under whatever may happen.

use talaria_types::runtime;

use super::super::health::{Identity, QUARANTINE, THRESHOLD};
use super::*;

mod properties;

/// A chain whose links do what a script says, on a clock of its own.
pub(super) struct Stage {
    pub(super) run: Run,
    pub(super) health: Health,
    pub(super) now: Instant,
    pub(super) start: Instant,
    /// Attempts made: link, size, seconds since the start.
    pub(super) asked: Vec<(usize, Size, f64)>,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

pub(super) fn terms(timeout: Duration) -> Terms {
    Terms {
        timeout,
        repeats: true,
        unusable: None,
    }
}

pub(super) fn health(links: usize) -> Health {
    let identities: Vec<Identity> = (0..links)
        .map(|link| Identity {
            account: format!("account {link}"),
            model: format!("model {link}"),
        })
        .collect();
    Health::new(&identities)
}

fn answer() -> Verdict {
    Verdict::Answer("a cat".to_owned())
}

fn failed(kind: FaultKind) -> Verdict {
    Verdict::failed(kind, "")
}

impl Stage {
    fn new(links: Vec<Terms>, total: Duration) -> Self {
        Self::hedged(links, total, None)
    }

    fn hedged(links: Vec<Terms>, total: Duration, hedge_after: Option<Duration>) -> Self {
        let now = runtime::now().into_std();
        Self {
            health: health(links.len()),
            run: Run::new(links, hedge_after, now + total),
            now,
            start: now,
            asked: Vec::new(),
        }
    }

    /// Two links of two minutes, three minutes in all.
    fn two() -> Self {
        Self::new(vec![terms(seconds(120)), terms(seconds(120))], seconds(180))
    }

    /// The next attempt; moves the clock over waits while nothing is open.
    fn ask(&mut self) -> Attempt {
        loop {
            match self.run.next(&mut self.health, self.now) {
                Order::Ask(attempt) => {
                    let at = self.now.duration_since(self.start).as_secs_f64();
                    self.asked.push((attempt.link, attempt.size, at));
                    return attempt;
                }
                Order::Wait(until) => {
                    assert!(self.run.open.is_empty(), "waits for an attempt");
                    self.now = until;
                }
                Order::Done => panic!("done: {:?}", self.run.records),
            }
        }
    }

    fn report(&mut self, attempt: Attempt, verdict: Verdict) {
        self.run
            .report(attempt.id, verdict, &mut self.health, self.now);
    }

    /// Runs to the end, every attempt ending at once as the script says.
    fn play(&mut self, mut script: impl FnMut(Attempt) -> Verdict) -> End {
        loop {
            match self.run.next(&mut self.health, self.now) {
                Order::Ask(attempt) => {
                    let at = self.now.duration_since(self.start).as_secs_f64();
                    self.asked.push((attempt.link, attempt.size, at));
                    let verdict = script(attempt);
                    self.report(attempt, verdict);
                }
                Order::Wait(until) => self.now = until,
                Order::Done => return self.run.clone().finish(&mut self.health, self.now).0,
            }
        }
    }

    fn links_asked(&self) -> Vec<usize> {
        self.asked.iter().map(|(link, ..)| *link).collect()
    }
}

fn fault_of(record: &Record) -> FaultKind {
    let Outcome::Failed(fault) = &record.outcome else {
        panic!("{record:?}")
    };
    fault.kind
}

#[test]
fn an_answer_ends_it() {
    let mut stage = Stage::two();
    let end = stage.play(|_| answer());
    let text = "a cat".to_owned();
    assert_eq!(end, End::Answered { link: 0, text });
    assert_eq!(stage.links_asked(), [0]);
}

#[test]
fn v10_what_each_fault_makes_of_a_link_while_another_is_left() {
    use FaultKind::*;
    for kind in FaultKind::ALL {
        let mut stage = Stage::two();
        let end = stage.play(|attempt| match attempt.link {
            0 => failed(*kind),
            _ => answer(),
        });
        assert!(matches!(end, End::Answered { link: 1, .. }), "{kind}");
        let twice = matches!(
            kind,
            Unreachable | ServerError | Empty | ReasoningOnly | TooLarge
        );
        let expected: &[usize] = if twice { &[0, 0, 1] } else { &[0, 1] };
        assert_eq!(stage.links_asked(), expected, "{kind}");
        assert_eq!(stage.now, stage.start, "{kind}: no pause before another");
    }
}

#[test]
fn a_link_that_took_long_to_fail_is_not_asked_again_while_another_is_left() {
    use FaultKind::*;
    for kind in [Unreachable, ServerError, Empty, ReasoningOnly] {
        let mut stage = Stage::two();
        let first = stage.ask();
        stage.now += seconds(6);
        stage.report(first, failed(kind));
        assert_eq!(stage.ask().link, 1, "{kind}");
    }
}

#[test]
fn the_last_link_is_asked_again_after_a_pause() {
    use FaultKind::*;
    for kind in FaultKind::ALL {
        let mut stage = Stage::new(vec![terms(seconds(120))], seconds(180));
        assert_eq!(stage.play(|_| failed(*kind)), End::Failed, "{kind}");
        let times: Vec<f64> = stage.asked.iter().map(|(.., at)| *at).collect();
        let expected: &[f64] = if matches!(kind, Unreachable | ServerError | RateLimited) {
            &[0.0, 1.0]
        } else if matches!(kind, Timeout | Empty | ReasoningOnly | TooLarge) {
            &[0.0, 0.0]
        } else {
            &[0.0]
        };
        assert_eq!(times, expected, "{kind}");
    }
}

#[test]
fn fr_190_a_short_wait_is_honoured_and_a_long_one_is_not() {
    for (asked, expected) in [
        (0, vec![(0, 0.0), (0, 0.0), (1, 0.0)]),
        (2, vec![(0, 0.0), (0, 2.0), (1, 2.0)]),
        (6, vec![(0, 0.0), (1, 0.0)]),
        (86_400, vec![(0, 0.0), (1, 0.0)]),
    ] {
        let mut stage = Stage::two();
        stage.play(|_| {
            let wait = Some(seconds(asked));
            let fault = Fault::new(FaultKind::RateLimited, "").with_retry_after(wait);
            Verdict::Failed(fault)
        });
        let first: Vec<_> = stage
            .asked
            .iter()
            .map(|(link, _, at)| (*link, *at))
            .collect();
        assert_eq!(first[..expected.len()], expected, "{asked} s: {first:?}");
    }
}

#[test]
fn fr_192_a_picture_that_is_too_large_is_sent_smaller_once() {
    let mut stage = Stage::two();
    stage.play(|attempt| match attempt.link {
        0 => failed(FaultKind::TooLarge),
        _ => answer(),
    });
    let sizes: Vec<_> = stage
        .asked
        .iter()
        .map(|(link, size, _)| (*link, *size))
        .collect();
    assert_eq!(
        sizes,
        [(0, Size::Full), (0, Size::Smaller), (1, Size::Full)]
    );
}

#[test]
fn a_link_that_may_not_be_asked_twice_is_not() {
    let once = Terms {
        repeats: false,
        ..terms(seconds(60))
    };
    let mut stage = Stage::new(vec![once], seconds(180));
    for kind in FaultKind::ALL {
        stage.run = Run::new(
            stage.run.links.iter().map(|it| it.terms.clone()).collect(),
            None,
            stage.run.deadline,
        );
        stage.health = health(1);
        stage.asked.clear();
        stage.play(|_| failed(*kind));
        assert_eq!(stage.links_asked(), [0], "{kind}");
    }
}

#[test]
fn fr_185_reasoning_is_used_where_nothing_better_comes() {
    let reasoned = || Verdict::Reasoned("hmm".to_owned());
    let mut stage = Stage::two();
    let end = stage.play(|attempt| match attempt.link {
        0 => reasoned(),
        _ => failed(FaultKind::ServerError),
    });
    let text = "hmm".to_owned();
    assert_eq!(end, End::Reasoned { link: 0, text });
    let mut stage = Stage::two();
    let end = stage.play(|attempt| match attempt.link {
        0 => reasoned(),
        _ => answer(),
    });
    assert!(matches!(end, End::Answered { link: 1, .. }));
}

#[test]
fn v08_the_report_names_every_link_in_its_order() {
    let unusable = Terms {
        unusable: Some(Fault::new(FaultKind::Misconfigured, "no key")),
        ..terms(seconds(120))
    };
    let links = vec![unusable, terms(seconds(120)), terms(seconds(60))];
    let mut stage = Stage::new(links, seconds(180));
    stage
        .health
        .record(2, &failed(FaultKind::Auth), HadTime::Enough, stage.now);
    stage.play(|_| failed(FaultKind::BadRequest));
    let (end, records) = stage.run.finish(&mut stage.health, stage.now);
    assert_eq!(end, End::Failed);
    let told: Vec<_> = records
        .iter()
        .map(|record| (record.link, fault_of(record)))
        .collect();
    let expected = [
        (0, FaultKind::Misconfigured),
        (1, FaultKind::BadRequest),
        (2, FaultKind::CircuitOpen),
    ];
    assert_eq!(told, expected);
}

#[test]
fn each_link_leaves_ten_seconds_to_every_later_one() {
    for (total, timeouts, expected) in [
        // Enough for everybody.
        (180, vec![120, 120], vec![120.0, 60.0]),
        (100, vec![120, 120], vec![90.0, 10.0]),
        (100, vec![120, 5, 120], vec![85.0, 5.0, 10.0]),
        (15, vec![120, 120], vec![5.0, 10.0]),
        // Not enough: each gets something, the last one no less than the others.
        (11, vec![120, 120], vec![2.0, 9.0]),
        (
            5,
            vec![120, 120, 120],
            vec![5.0 / 3.0, 5.0 / 3.0, 5.0 / 3.0],
        ),
        (3, vec![120, 1], vec![2.0, 1.0]),
    ] {
        let links: Vec<Terms> = timeouts.iter().map(|it| terms(seconds(*it))).collect();
        let mut stage = Stage::new(links, seconds(total));
        let mut shares = Vec::new();
        for _ in &timeouts {
            let attempt = stage.ask();
            shares.push(attempt.until.duration_since(stage.now).as_secs_f64());
            stage.now = attempt.until;
            stage.report(attempt, failed(FaultKind::Timeout));
        }
        for (share, expected) in shares.iter().zip(&expected) {
            assert!((share - expected).abs() < 1e-6, "{total} s: {shares:?}");
        }
        assert_eq!(stage.run.next(&mut stage.health, stage.now), Order::Done);
        assert_eq!(stage.links_asked().len(), timeouts.len());
    }
}

#[test]
fn links_that_cannot_be_asked_reserve_nothing() {
    let links = vec![terms(seconds(120)); 3];
    let mut stage = Stage::new(links, seconds(60));
    stage.run.links[1].terms.unusable = Some(Fault::new(FaultKind::Misconfigured, ""));
    stage
        .health
        .record(2, &failed(FaultKind::Quota), HadTime::Enough, stage.now);
    let attempt = stage.ask();
    assert_eq!(attempt.until.duration_since(stage.now), seconds(60));
}

#[test]
fn a_slow_link_is_hedged_and_the_first_answer_wins() {
    let links = vec![terms(seconds(120)); 3];
    let mut stage = Stage::hedged(links, seconds(180), Some(seconds(4)));
    let first = stage.ask();
    let due = stage.now + seconds(4);
    assert_eq!(
        stage.run.next(&mut stage.health, stage.now),
        Order::Wait(due)
    );
    stage.now = due;
    let second = stage.ask();
    assert_eq!(second.after, Some((0, HopReason::Hedge)));
    // Never three at a time.
    stage.now += seconds(60);
    assert!(matches!(
        stage.run.next(&mut stage.health, stage.now),
        Order::Wait(_)
    ));
    stage.report(second, answer());
    assert_eq!(stage.run.next(&mut stage.health, stage.now), Order::Done);
    let (end, records) = stage.run.finish(&mut stage.health, stage.now);
    assert!(matches!(end, End::Answered { link: 1, .. }));
    let told: Vec<_> = records
        .iter()
        .map(|it| (it.link, it.is_hedge, &it.outcome))
        .collect();
    let expected = [
        (1, true, &Outcome::Answered),
        (0, false, &Outcome::Cancelled),
    ];
    assert_eq!(told, expected);
    // A late report changes nothing.
    let _late = first;
}

#[test]
fn a_hedge_that_fails_leaves_the_slow_link_its_time_and_lets_the_next_one_in() {
    let links = vec![terms(seconds(120)); 3];
    let mut stage = Stage::hedged(links, seconds(180), Some(seconds(4)));
    let first = stage.ask();
    stage.now += seconds(4);
    let second = stage.ask();
    stage.report(second, failed(FaultKind::ServerError));
    let third = stage.ask();
    assert_eq!(third.link, 2, "the slow one is not asked twice meanwhile");
    stage.report(third, failed(FaultKind::BadRequest));
    assert!(matches!(
        stage.run.next(&mut stage.health, stage.now),
        Order::Wait(_)
    ));
    stage.report(first, answer());
    assert_eq!(stage.run.next(&mut stage.health, stage.now), Order::Done);
}

#[test]
fn an_open_breaker_is_passed_over_without_a_word_to_the_backend() {
    let mut stage = Stage::two();
    let mut contacts = 0;
    for round in 0..10 {
        let links = vec![terms(seconds(120)), terms(seconds(120))];
        stage.run = Run::new(links, None, stage.now + seconds(180));
        let end = stage.play(|attempt| match attempt.link {
            0 => {
                contacts += 1;
                failed(FaultKind::Unreachable)
            }
            _ => answer(),
        });
        assert!(matches!(end, End::Answered { link: 1, .. }), "{round}");
    }
    assert_eq!(contacts, THRESHOLD);
}

#[test]
fn the_only_link_is_waited_for_where_it_said_how_long() {
    let mut stage = Stage::new(vec![terms(seconds(60))], seconds(60));
    let limited = Fault::new(FaultKind::RateLimited, "").with_retry_after(Some(seconds(3)));
    stage
        .health
        .record(0, &Verdict::Failed(limited), HadTime::Enough, stage.now);
    let end = stage.play(|_| answer());
    assert!(matches!(end, End::Answered { .. }));
    assert_eq!(stage.now.duration_since(stage.start), seconds(3));
    // Not for a key that is wrong.
    stage.run = Run::new(vec![terms(seconds(60))], None, stage.now + QUARANTINE);
    stage
        .health
        .record(0, &failed(FaultKind::Auth), HadTime::Enough, stage.now);
    assert_eq!(stage.play(|_| answer()), End::Failed);
    assert_eq!(stage.now.duration_since(stage.start), seconds(3));
}

#[test]
fn only_a_time_that_was_named_is_waited_for() {
    for (kind, named, is_answered) in [
        (FaultKind::ServerError, Some(seconds(30)), true),
        (FaultKind::ServerError, Some(seconds(31)), false),
        (FaultKind::RateLimited, None, false),
    ] {
        let mut stage = Stage::new(vec![terms(seconds(60))], seconds(90));
        for _ in 0..3 {
            let fault = Fault::new(kind, "").with_retry_after(named);
            let verdict = Verdict::Failed(fault);
            stage.health.record(0, &verdict, HadTime::Enough, stage.now);
        }
        let end = stage.play(|_| answer());
        let was = matches!(end, End::Answered { .. });
        assert_eq!(was, is_answered, "{kind} {named:?}");
    }
}

#[test]
fn the_only_link_is_waited_for_while_somebody_finds_out() {
    let mut stage = Stage::new(vec![terms(seconds(60))], seconds(60));
    stage
        .health
        .record(0, &failed(FaultKind::Quota), HadTime::Enough, stage.now);
    stage.now += QUARANTINE;
    stage.start = stage.now;
    stage.run = Run::new(vec![terms(seconds(60))], None, stage.now + seconds(60));
    stage
        .health
        .admit(0, stage.now, stage.now + seconds(2))
        .unwrap();
    let end = stage.play(|_| answer());
    assert!(matches!(end, End::Answered { .. }));
    assert_eq!(stage.now.duration_since(stage.start), seconds(2));
}
