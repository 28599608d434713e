//! Settings that are not as asked, or not as usual, of numbers that stand in no row of a record: ratios of pairs, recommendations,
//! explanations, predictions. In the row of a record they are its warnings.

use model::Spec;
use model::record::{Record, Setting};
use model::warning::Warning;
use schemars::JsonSchema;
use serde::Serialize;

/// A setting with which something was measured, and of which a reader must know.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct MissedSetting {
    /// What it is a setting of.
    pub mechanism: Spec,
    /// What was asked for, or is usual, and what was got.
    pub warning: Warning,
}

impl MissedSetting {
    /// Whether it is of the setting that `warning` is of.
    fn is_of(&self, warning: &Warning) -> bool {
        match (&self.warning, warning) {
            (Warning::Clamped { name: told, .. }, Warning::Clamped { name, .. })
            | (Warning::Unusual { name: told, .. }, Warning::Unusual { name, .. }) => told == name,
            _ => false,
        }
    }
}

/// Those among the settings of each mechanism, each once: of one that differs from case to case, as first got.
pub fn missed_settings<'a>(
    of_mechanisms: impl IntoIterator<Item = (&'a Spec, &'a [Setting])>,
) -> Vec<MissedSetting> {
    let mut missed: Vec<MissedSetting> = Vec::new();
    for (mechanism, settings) in of_mechanisms {
        for warning in settings.iter().filter_map(Setting::warning) {
            let is_told = |told: &MissedSetting| told.mechanism == *mechanism && told.is_of(&warning);
            if !missed.iter().any(is_told) {
                missed.push(MissedSetting { mechanism: mechanism.clone(), warning });
            }
        }
    }
    missed
}

/// Those of `records`.
pub fn missed_in_records<'a>(records: impl IntoIterator<Item = &'a Record>) -> Vec<MissedSetting> {
    missed_settings(records.into_iter().map(|record| (&record.case.spec, record.settings.as_slice())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_as_asked_or_as_usual_is_told_once_of_each_mechanism() {
        let setting = |asked: Option<&str>, got: &str, usual: Option<&str>| Setting {
            name: "capacity".to_owned(),
            asked: asked.map(str::to_owned),
            got: got.to_owned(),
            clamped: asked.is_some_and(|asked| asked != got),
            usual: usual.map(str::to_owned),
        };
        let (pipe, fifo) = (Spec::plain("pipe"), Spec::plain("fifo"));
        let small = [setting(None, "8192", Some("65536")), setting(Some("2M"), "1M", None)];
        let smaller = [setting(None, "4096", Some("65536")), setting(Some("2M"), "1M", None)];
        let as_it_should = [setting(None, "65536", Some("65536")), setting(Some("1M"), "1M", None)];
        let found = missed_settings([
            (&pipe, small.as_slice()),
            (&pipe, smaller.as_slice()),
            (&fifo, small.as_slice()),
            (&fifo, as_it_should.as_slice()),
        ]);
        let told: Vec<String> =
            found.iter().map(|one| format!("{} {}", one.mechanism, one.warning)).collect();
        let clamped = "capacity: asked for 2M, got 1M";
        let unusual = "capacity: usually 65536, here 8192";
        let expected =
            ["pipe", "fifo"].map(|name| [format!("{name} {unusual}"), format!("{name} {clamped}")]);
        assert_eq!(told, expected.concat());
    }
}
