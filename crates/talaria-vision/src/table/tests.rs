//! The 54 rows of specification 2.5, typed in as data.

use talaria_config::ImageInputMode::{self, Auto, Native, Text};

use super::{Cause, gate};
use crate::RouteClass::{self, Accepts, Neutral, Veto};

const YES: Option<bool> = Some(true);
const NO: Option<bool> = Some(false);
const UNKNOWN: Option<bool> = None;

/// Mode, explicit auxiliary backend, sight of the model, class of the route, gate.
struct Row(ImageInputMode, bool, Option<bool>, RouteClass, bool);

macro_rules! rows {
    ($($name:ident: $mode:ident $aux:literal $sees:ident $class:ident => $open:literal;)*) => {
        /// Every row, in the order of the specification.
        const ROWS: &[Row] = &[$(Row($mode, $aux, $sees, $class, $open)),*];

        $(#[test]
        fn $name() {
            check(&Row($mode, $aux, $sees, $class, $open));
        })*
    };
}

rows! {
    g01_auto_no_aux_seeing_accepts_is_open: Auto false YES Accepts => true;
    g02_auto_no_aux_seeing_neutral_is_open: Auto false YES Neutral => true;
    g03_auto_no_aux_seeing_veto_is_closed: Auto false YES Veto => false;
    g04_auto_no_aux_blind_accepts_is_closed: Auto false NO Accepts => false;
    g05_auto_no_aux_blind_neutral_is_closed: Auto false NO Neutral => false;
    g06_auto_no_aux_blind_veto_is_closed: Auto false NO Veto => false;
    g07_auto_no_aux_unknown_accepts_is_closed: Auto false UNKNOWN Accepts => false;
    g08_auto_no_aux_unknown_neutral_is_closed: Auto false UNKNOWN Neutral => false;
    g09_auto_no_aux_unknown_veto_is_closed: Auto false UNKNOWN Veto => false;
    g10_auto_explicit_aux_seeing_accepts_is_closed: Auto true YES Accepts => false;
    g11_auto_explicit_aux_seeing_neutral_is_closed: Auto true YES Neutral => false;
    g12_auto_explicit_aux_seeing_veto_is_closed: Auto true YES Veto => false;
    g13_auto_explicit_aux_blind_accepts_is_closed: Auto true NO Accepts => false;
    g14_auto_explicit_aux_blind_neutral_is_closed: Auto true NO Neutral => false;
    g15_auto_explicit_aux_blind_veto_is_closed: Auto true NO Veto => false;
    g16_auto_explicit_aux_unknown_accepts_is_closed: Auto true UNKNOWN Accepts => false;
    g17_auto_explicit_aux_unknown_neutral_is_closed: Auto true UNKNOWN Neutral => false;
    g18_auto_explicit_aux_unknown_veto_is_closed: Auto true UNKNOWN Veto => false;
    g19_native_no_aux_seeing_accepts_is_open: Native false YES Accepts => true;
    g20_native_no_aux_seeing_neutral_is_open: Native false YES Neutral => true;
    g21_native_no_aux_seeing_veto_is_closed: Native false YES Veto => false;
    g22_native_no_aux_blind_accepts_is_open: Native false NO Accepts => true;
    g23_native_no_aux_blind_neutral_is_closed: Native false NO Neutral => false;
    g24_native_no_aux_blind_veto_is_closed: Native false NO Veto => false;
    g25_native_no_aux_unknown_accepts_is_open: Native false UNKNOWN Accepts => true;
    g26_native_no_aux_unknown_neutral_is_closed: Native false UNKNOWN Neutral => false;
    g27_native_no_aux_unknown_veto_is_closed: Native false UNKNOWN Veto => false;
    g28_native_explicit_aux_seeing_accepts_is_open: Native true YES Accepts => true;
    g29_native_explicit_aux_seeing_neutral_is_open: Native true YES Neutral => true;
    g30_native_explicit_aux_seeing_veto_is_closed: Native true YES Veto => false;
    g31_native_explicit_aux_blind_accepts_is_open: Native true NO Accepts => true;
    g32_native_explicit_aux_blind_neutral_is_closed: Native true NO Neutral => false;
    g33_native_explicit_aux_blind_veto_is_closed: Native true NO Veto => false;
    g34_native_explicit_aux_unknown_accepts_is_open: Native true UNKNOWN Accepts => true;
    g35_native_explicit_aux_unknown_neutral_is_closed: Native true UNKNOWN Neutral => false;
    g36_native_explicit_aux_unknown_veto_is_closed: Native true UNKNOWN Veto => false;
    g37_text_no_aux_seeing_accepts_is_closed: Text false YES Accepts => false;
    g38_text_no_aux_seeing_neutral_is_closed: Text false YES Neutral => false;
    g39_text_no_aux_seeing_veto_is_closed: Text false YES Veto => false;
    g40_text_no_aux_blind_accepts_is_closed: Text false NO Accepts => false;
    g41_text_no_aux_blind_neutral_is_closed: Text false NO Neutral => false;
    g42_text_no_aux_blind_veto_is_closed: Text false NO Veto => false;
    g43_text_no_aux_unknown_accepts_is_closed: Text false UNKNOWN Accepts => false;
    g44_text_no_aux_unknown_neutral_is_closed: Text false UNKNOWN Neutral => false;
    g45_text_no_aux_unknown_veto_is_closed: Text false UNKNOWN Veto => false;
    g46_text_explicit_aux_seeing_accepts_is_closed: Text true YES Accepts => false;
    g47_text_explicit_aux_seeing_neutral_is_closed: Text true YES Neutral => false;
    g48_text_explicit_aux_seeing_veto_is_closed: Text true YES Veto => false;
    g49_text_explicit_aux_blind_accepts_is_closed: Text true NO Accepts => false;
    g50_text_explicit_aux_blind_neutral_is_closed: Text true NO Neutral => false;
    g51_text_explicit_aux_blind_veto_is_closed: Text true NO Veto => false;
    g52_text_explicit_aux_unknown_accepts_is_closed: Text true UNKNOWN Accepts => false;
    g53_text_explicit_aux_unknown_neutral_is_closed: Text true UNKNOWN Neutral => false;
    g54_text_explicit_aux_unknown_veto_is_closed: Text true UNKNOWN Veto => false;
}

fn check(row: &Row) {
    let &Row(mode, aux, sees, class, open) = row;
    let (is_open, cause) = gate(mode, aux, false, sees, class);
    assert_eq!(is_open, open);
    let cause_of_open = matches!(cause, Cause::ModelSees | Cause::OperatorOrdered);
    assert_eq!(
        cause_of_open, open,
        "{cause:?} is no cause of open = {open}"
    );
}

#[test]
fn every_row_is_there_once() {
    assert_eq!(ROWS.len(), 54);
    for (index, Row(mode, aux, sees, class, _)) in ROWS.iter().enumerate() {
        let same = |row: &&Row| {
            let Row(other_mode, other_aux, other_sees, other_class, _) = row;
            (other_mode, other_aux, other_sees, other_class) == (mode, aux, sees, class)
        };
        assert_eq!(ROWS.iter().filter(same).count(), 1, "row {}", index + 1);
    }
}

#[test]
fn the_compact_rule_holds_for_every_row() {
    for Row(mode, aux, sees, class, open) in ROWS {
        let native = match mode {
            Native => true,
            Text => false,
            Auto => !aux && *sees == YES,
        };
        let rule = native && *class != Veto && (*class == Accepts || *sees == YES);
        assert_eq!(*open, rule, "{mode:?} {aux} {sees:?} {class:?}");
    }
}

#[test]
fn causes_name_what_decided() {
    for (mode, aux, sees, class, cause) in [
        (Auto, false, YES, Neutral, Cause::ModelSees),
        (Auto, false, YES, Veto, Cause::RouteRefuses),
        (Auto, false, NO, Veto, Cause::ModelBlind),
        (Auto, false, UNKNOWN, Accepts, Cause::ModelUnknown),
        (Auto, true, YES, Accepts, Cause::VisionBackend),
        (Auto, true, NO, Accepts, Cause::VisionBackend),
        (Native, true, NO, Accepts, Cause::OperatorOrdered),
        (Native, false, UNKNOWN, Accepts, Cause::OperatorOrdered),
        (Native, false, YES, Accepts, Cause::ModelSees),
        (Native, false, UNKNOWN, Neutral, Cause::ModelUnknown),
        (Native, false, NO, Neutral, Cause::ModelBlind),
        (Native, false, YES, Veto, Cause::RouteRefuses),
        (Text, false, YES, Accepts, Cause::ModeText),
    ] {
        assert_eq!(
            gate(mode, aux, false, sees, class).1,
            cause,
            "{mode:?} {sees:?} {class:?}"
        );
    }
}

#[test]
fn prefer_native_lets_auto_ignore_an_explicit_backend_for_models_that_see() {
    for class in [Accepts, Neutral, Veto] {
        for sees in [YES, NO, UNKNOWN] {
            let preferred = gate(Auto, true, true, sees, class);
            if sees == YES {
                assert_eq!(preferred, gate(Auto, false, false, sees, class));
            } else {
                assert_eq!(preferred, (false, Cause::VisionBackend));
            }
            for mode in [Native, Text] {
                assert_eq!(
                    gate(mode, true, true, sees, class),
                    gate(mode, true, false, sees, class)
                );
            }
        }
    }
}

#[test]
fn labels_of_causes_differ() {
    let labels: std::collections::BTreeSet<_> = Cause::ALL.iter().map(|it| it.as_str()).collect();
    assert_eq!(labels.len(), Cause::ALL.len());
}
