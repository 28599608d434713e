//! No two public types of one name in different crates: a reader who meets the name knows the type.

use super::breach::Breach;
use super::source_file::{SourceFile, is_for_tests};
use std::collections::BTreeMap;
use syn::visit::{self, Visit};
use syn::{Ident, Visibility};

/// Every public type that another crate has, too, by name.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    let mut types: BTreeMap<String, Vec<(&SourceFile, usize)>> = BTreeMap::new();
    for source in sources.iter().filter(|source| source.crate_folder().is_some()) {
        let Some(file) = &source.rust else { continue };
        let mut found = PublicTypes::default();
        found.visit_file(file);
        for (name, line) in found.0 {
            types.entry(name).or_default().push((source, line));
        }
    }
    types.into_iter().flat_map(|(name, places)| breaches(&name, &places)).collect()
}

fn breaches(name: &str, places: &[(&SourceFile, usize)]) -> Vec<Breach> {
    let in_another_crate = |of: &SourceFile| {
        let other = places.iter().find(|(source, _)| source.crate_folder() != of.crate_folder());
        other.map(|(source, line)| format!("public type `{name}` is also at {}:{line}", source.name))
    };
    let breach =
        |(source, line): &(&SourceFile, usize)| Some(Breach::new(source, *line, in_another_crate(source)?));
    places.iter().filter_map(breach).collect()
}

/// The names of public types, with their lines.
#[derive(Default)]
struct PublicTypes(Vec<(String, usize)>);

impl PublicTypes {
    fn add(&mut self, visibility: &Visibility, name: &Ident) {
        if matches!(visibility, Visibility::Public(_)) {
            self.0.push((name.to_string(), name.span().start().line));
        }
    }
}

impl<'ast> Visit<'ast> for PublicTypes {
    fn visit_item_struct(&mut self, item: &'ast syn::ItemStruct) {
        self.add(&item.vis, &item.ident);
    }
    fn visit_item_enum(&mut self, item: &'ast syn::ItemEnum) {
        self.add(&item.vis, &item.ident);
    }
    fn visit_item_union(&mut self, item: &'ast syn::ItemUnion) {
        self.add(&item.vis, &item.ident);
    }
    fn visit_item_trait(&mut self, item: &'ast syn::ItemTrait) {
        self.add(&item.vis, &item.ident);
    }
    fn visit_item_type(&mut self, item: &'ast syn::ItemType) {
        self.add(&item.vis, &item.ident);
    }
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        if !is_for_tests(&item.attrs) {
            visit::visit_item_mod(self, item);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(a: &str, b: &str) -> usize {
        check(&[SourceFile::new("crates/a/src/lib.rs", a), SourceFile::new("crates/b/src/x.rs", b)]).len()
    }

    #[test]
    fn two_crates_have_no_public_type_of_one_name() {
        assert_eq!(count("pub struct Kind;", "pub enum Kind {}"), 2);
        assert_eq!(count("pub trait Kind {}", "mod deep { pub type Kind = u8; }"), 2);
        assert_eq!(count("pub union Kind { a: u8 }", "pub(crate) struct Kind;"), 0);
        assert_eq!(count("pub struct Kind;", "struct Kind;"), 0);
        assert_eq!(count("pub struct Kind;", "#[cfg(test)] mod tests { pub struct Kind; }"), 0);
        assert_eq!(count("pub struct Kind; mod m { pub struct Kind; }", ""), 0, "one crate");
        assert_eq!(count("pub struct Kind;", "pub fn kind() {} pub const KIND: u8 = 1;"), 0);
    }

    #[test]
    fn a_finding_names_both_places() {
        let sources = [
            SourceFile::new("crates/a/src/lib.rs", "\npub struct Kind;"),
            SourceFile::new("crates/b/src/x.rs", "pub enum Kind {}"),
        ];
        let breach = check(&sources).remove(0).to_string();
        assert_eq!(breach, "crates/a/src/lib.rs:2: public type `Kind` is also at crates/b/src/x.rs:1");
    }
}
