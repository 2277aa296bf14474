//! The breakers, by table and by the clock that is handed in.

use talaria_types::runtime;

use super::*;

/// Two links of one account, one of another account with the same model name.
fn health() -> Health {
    let link = |account: &str, model: &str| Identity {
        account: account.to_owned(),
        model: format!("{account}/{model}"),
    };
    Health::new(&[link("a", "x"), link("a", "y"), link("b", "x")])
}

fn now() -> Instant {
    runtime::now().into_std()
}

fn failed(kind: FaultKind) -> Verdict {
    Verdict::failed(kind, "")
}

fn open(health: &Health, now: Instant) -> Vec<usize> {
    (0..3)
        .filter(|link| health.check(*link, now).is_err())
        .collect()
}

#[test]
fn three_failures_in_a_row_open_the_account_and_an_answer_closes_it() {
    let (mut health, now) = (health(), now());
    for _ in 0..2 {
        health.record(0, &failed(FaultKind::Unreachable), HadTime::Enough, now);
    }
    health.record(1, &Verdict::Answer("a".to_owned()), HadTime::Enough, now);
    for round in 0..3 {
        assert_eq!(open(&health, now), [] as [usize; 0], "{round}");
        health.record(0, &failed(FaultKind::ServerError), HadTime::Enough, now);
    }
    assert_eq!(open(&health, now), [0, 1]);
    health.record(1, &Verdict::Answer("a".to_owned()), HadTime::Enough, now);
    assert_eq!(open(&health, now), [] as [usize; 0]);
}

#[test]
fn v06_a_bad_key_closes_its_account_and_no_model() {
    let (mut health, now) = (health(), now());
    health.record(0, &failed(FaultKind::Auth), HadTime::Enough, now);
    assert_eq!(open(&health, now), [0, 1]);
    let words = health.check(1, now).unwrap_err().fault().to_string();
    assert!(words.contains("authentication failed"), "{words}");
    assert_eq!(open(&health, now + QUARANTINE), [] as [usize; 0]);
}

#[test]
fn a_model_that_is_not_there_closes_itself_and_not_its_key() {
    for kind in [FaultKind::UnknownModel, FaultKind::CannotSee] {
        let (mut health, now) = (health(), now());
        health.record(0, &failed(kind), HadTime::Enough, now);
        assert_eq!(open(&health, now), [0], "{kind}");
    }
}

#[test]
fn what_a_picture_made_a_model_say_closes_nothing() {
    let (mut health, now) = (health(), now());
    for kind in [
        FaultKind::CannotSee,
        FaultKind::RefusalOnly,
        FaultKind::ErrorInside,
    ] {
        for _ in 0..9 {
            let fault = Fault::new(kind, "no picture").with_origin(Origin::Words);
            health.record(0, &Verdict::Failed(fault), HadTime::Enough, now);
        }
        assert_eq!(open(&health, now), [] as [usize; 0], "{kind}");
    }
}

#[test]
fn what_waits_in_our_own_queue_says_nothing_of_the_link() {
    let (mut health, now) = (health(), now());
    for kind in [FaultKind::RateLimited, FaultKind::Timeout] {
        for _ in 0..9 {
            let fault = Fault::new(kind, "not sent").in_our_queue();
            health.record(0, &Verdict::Failed(fault), HadTime::Enough, now);
        }
        assert_eq!(open(&health, now), [] as [usize; 0], "{kind}");
    }
    // Nor does it say that the link works.
    health.record(0, &failed(FaultKind::Timeout), HadTime::Enough, now);
    health.record(0, &failed(FaultKind::Timeout), HadTime::Enough, now);
    let waited = Fault::new(FaultKind::Timeout, "not sent").in_our_queue();
    health.record(0, &Verdict::Failed(waited), HadTime::Enough, now);
    health.record(0, &failed(FaultKind::Timeout), HadTime::Enough, now);
    assert_eq!(open(&health, now), [0]);
}

#[test]
fn answers_that_do_not_help_say_that_the_account_works() {
    let (mut health, now) = (health(), now());
    for _ in 0..2 {
        health.record(0, &failed(FaultKind::ServerError), HadTime::Enough, now);
        health.record(0, &failed(FaultKind::ServerError), HadTime::Enough, now);
        health.record(0, &failed(FaultKind::BadRequest), HadTime::Enough, now);
    }
    assert_eq!(open(&health, now), [] as [usize; 0]);
}

#[test]
fn a_timeout_counts_only_where_there_was_time() {
    let (mut health, now) = (health(), now());
    for _ in 0..9 {
        health.record(0, &failed(FaultKind::Timeout), HadTime::Short, now);
    }
    assert_eq!(open(&health, now), [] as [usize; 0]);
    for _ in 0..3 {
        health.record(0, &failed(FaultKind::Timeout), HadTime::Enough, now);
    }
    assert_eq!(open(&health, now), [0]);
}

#[test]
fn after_the_cool_down_one_probe_decides() {
    let (mut health, mut now) = (health(), now());
    for _ in 0..3 {
        health.record(0, &failed(FaultKind::Unreachable), HadTime::Enough, now);
    }
    assert_eq!(health.state(0, now), BreakerState::Open);
    let mut cool_down = COOL_DOWN;
    for _ in 0..8 {
        let early = now + cool_down - Duration::from_millis(1);
        assert!(health.check(0, early).is_err());
        now += cool_down;
        assert_eq!(health.state(0, now), BreakerState::HalfOpen);
        health.admit(0, now, now + Duration::from_secs(9)).unwrap();
        assert_eq!(health.state(0, now), BreakerState::HalfOpen);
        assert!(health.admit(0, now, now).is_err(), "one probe at a time");
        assert!(health.admit(1, now, now).is_err(), "of the account");
        health.record(0, &failed(FaultKind::Unreachable), HadTime::Enough, now);
        cool_down = (cool_down * 2).min(MAX_COOL_DOWN);
    }
    now += cool_down;
    health.admit(0, now, now + Duration::from_secs(9)).unwrap();
    health.record(0, &Verdict::Answer("a".to_owned()), HadTime::Enough, now);
    assert_eq!(health.state(0, now), BreakerState::Closed);
}

#[test]
fn a_probe_that_is_never_heard_of_again_makes_room_for_another() {
    let (mut health, now) = (health(), now());
    health.record(0, &failed(FaultKind::Quota), HadTime::Enough, now);
    let later = now + QUARANTINE;
    let until = later + Duration::from_secs(9);
    health.admit(0, later, until).unwrap();
    assert!(health.check(0, until - Duration::from_millis(1)).is_err());
    assert!(health.check(0, until).is_ok());
    // One that was given up makes room at once.
    health.forget(0, later);
    assert!(health.check(0, later).is_ok());
}

#[test]
fn fr_190_a_wait_the_provider_asks_for_is_kept_for_every_link_of_the_account() {
    let (mut health, now) = (health(), now());
    let wait = Duration::from_secs(2);
    let limited = |wait| {
        let fault = Fault::new(FaultKind::RateLimited, "").with_retry_after(wait);
        Verdict::Failed(fault)
    };
    health.record(0, &limited(Some(wait)), HadTime::Enough, now);
    assert_eq!(open(&health, now + wait - Duration::from_millis(1)), [0, 1]);
    assert_eq!(open(&health, now + wait), [] as [usize; 0]);
    // Without one, or with one of no length, it counts like any failure.
    health.record(2, &limited(None), HadTime::Enough, now);
    health.record(2, &limited(Some(Duration::ZERO)), HadTime::Enough, now);
    assert!(health.check(2, now).is_ok());
    health.record(
        2,
        &limited(Some(Duration::from_secs(86_400))),
        HadTime::Enough,
        now,
    );
    assert!(health.check(2, now + MAX_COOL_DOWN).is_ok());
}

#[test]
fn a_wait_that_was_named_does_not_begin_the_doubling() {
    let (mut health, now) = (health(), now());
    let wait = Duration::from_secs(2);
    let limited = Fault::new(FaultKind::RateLimited, "").with_retry_after(Some(wait));
    health.record(0, &Verdict::Failed(limited), HadTime::Enough, now);
    assert!(health.check(0, now).unwrap_err().is_named);
    let later = now + wait;
    health.admit(0, later, later + wait).unwrap();
    health.record(0, &failed(FaultKind::ServerError), HadTime::Enough, later);
    let blocked = health.check(0, later).unwrap_err();
    assert_eq!((blocked.wait, blocked.is_named), (COOL_DOWN, false));
}

#[test]
fn every_kind_of_fault_leaves_some_way_back() {
    for kind in FaultKind::ALL {
        let (mut health, now) = (health(), now());
        for _ in 0..20 {
            health.record(0, &failed(*kind), HadTime::Enough, now);
        }
        assert!(health.check(0, now + MAX_COOL_DOWN).is_ok(), "{kind}");
        assert!(
            health.check(2, now).is_ok(),
            "{kind} is nothing of another account"
        );
    }
}

mod whatever_happens {
    use proptest::prelude::*;

    use super::*;

    #[derive(Clone, Debug)]
    enum Step {
        Ended(usize, Verdict, HadTime),
        Asked(usize),
        GivenUp(usize),
        Passed(u64),
    }

    fn step() -> impl Strategy<Value = Step> {
        let link = 0_usize..2;
        let wait = prop::option::of(0_u64..2_000);
        let kind = prop::sample::select(FaultKind::ALL);
        let failed = (kind, wait).prop_map(|(kind, wait)| {
            let wait = wait.map(Duration::from_secs);
            Verdict::Failed(Fault::new(kind, "").with_retry_after(wait))
        });
        let verdict = prop_oneof![
            1 => Just(Verdict::Answer("a".to_owned())),
            1 => Just(Verdict::Reasoned("r".to_owned())),
            9 => failed,
        ];
        let had_time = prop::sample::select(vec![HadTime::Enough, HadTime::Short]);
        prop_oneof![
            4 => (link.clone(), verdict, had_time).prop_map(|(link, verdict, had_time)| {
                Step::Ended(link, verdict, had_time)
            }),
            3 => link.clone().prop_map(Step::Asked),
            1 => link.prop_map(Step::GivenUp),
            2 => (0_u64..400).prop_map(Step::Passed),
        ]
    }

    proptest! {
        #[test]
        fn a_breaker_opens_for_a_while_lets_one_probe_and_keeps_to_its_account(
            steps in prop::collection::vec(step(), 1..60),
        ) {
            let (mut health, mut now) = (health(), now());
            let probe = Duration::from_secs(20);
            for step in steps {
                match step {
                    Step::Ended(link, verdict, had_time) => {
                        health.record(link, &verdict, had_time, now);
                        if let Verdict::Answer(_) = verdict {
                            prop_assert_eq!(health.state(link, now), BreakerState::Closed);
                        }
                    }
                    Step::Asked(link) => {
                        let before = health.state(link, now);
                        let admitted = health.admit(link, now, now + probe).is_ok();
                        prop_assert!(before != BreakerState::Open || !admitted);
                        prop_assert!(before != BreakerState::Closed || admitted);
                        if admitted && before == BreakerState::HalfOpen {
                            prop_assert!(health.check(link, now).is_err());
                            prop_assert!(health.check(link, now + probe).is_ok());
                        }
                    }
                    Step::GivenUp(link) => health.forget(link, now),
                    Step::Passed(seconds) => now += Duration::from_secs(seconds),
                }
                for link in 0..2 {
                    if let Err(blocked) = health.check(link, now) {
                        prop_assert!(blocked.wait <= MAX_COOL_DOWN);
                        prop_assert_eq!(blocked.fault().kind, FaultKind::CircuitOpen);
                    }
                    prop_assert!(health.check(link, now + MAX_COOL_DOWN).is_ok());
                }
                prop_assert_eq!(health.state(2, now), BreakerState::Closed);
            }
        }
    }
}
