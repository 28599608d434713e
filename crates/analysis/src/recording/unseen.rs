//! What is not in a scenario, in sentences: each once, with how often it was so.

/// More sentences are not said.
const MOST_SENTENCES: usize = 32;

/// Sentences on what is not in a scenario, in the order in which they were said first.
#[derive(Debug, Default)]
pub(super) struct Unseen(Vec<(String, Option<u64>)>);

impl Unseen {
    /// `text` is so.
    pub(super) fn say(&mut self, text: impl Into<String>) {
        self.add(text.into(), None);
    }

    /// There are `count` more of what `what` says.
    pub(super) fn count(&mut self, count: u64, what: impl Into<String>) {
        if count > 0 {
            self.add(what.into(), Some(count));
        }
    }

    fn add(&mut self, text: String, more: Option<u64>) {
        match self.0.iter_mut().find(|(said, _)| *said == text) {
            Some((_, count)) => *count = count.zip(more).map(|(count, more)| count + more),
            None => self.0.push((text, more)),
        }
    }

    /// The sentences: `23 × messages of a process to itself`.
    pub(super) fn into_sentences(self) -> Vec<String> {
        let sentence = |(text, count): (String, Option<u64>)| match count {
            Some(count) => format!("{count} × {text}"),
            None => text,
        };
        self.0.into_iter().take(MOST_SENTENCES).map(sentence).collect()
    }
}
