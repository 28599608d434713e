//! No circles of imports between the files of a crate: each file can be read when those that it imports are known.
//!
//! File a imports file b if it uses something that b defines: in a `use` declaration or by a path (`crate::b::X`,
//! `super::X`, `b::X`), also within macros. A path is followed through `use` and `pub use` declarations to the file that
//! defines what it names, so that neither `mod b;` nor a parent's `pub use b::X` is an import of b. What is compiled for
//! tests alone does not count, and methods, which have no path, cannot be seen.

use super::breach::Breach;
use super::source_file::{SourceFile, is_for_tests};
use proc_macro2::{TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};
use syn::visit::{self, Visit};
use syn::{Item, UseTree};

/// Every circle of every crate.
pub fn check(sources: &[SourceFile]) -> Vec<Breach> {
    let is_root =
        |source: &&SourceFile| source.name.ends_with("/src/lib.rs") || source.name.ends_with("/src/main.rs");
    sources.iter().filter(is_root).flat_map(|root| circles_of(root, sources)).collect()
}

fn circles_of(root: &SourceFile, sources: &[SourceFile]) -> Vec<Breach> {
    let modules = Crate::read(root, sources);
    let imports = modules.imports();
    let breach = |circle: Vec<&str>| {
        let next = circle.iter().cycle().skip(1);
        let steps = circle.iter().zip(next).map(|(from, to)| {
            let names: Vec<&str> = imports[*from][*to].iter().map(String::as_str).collect();
            format!("{} imports {} ({})", short(from, root), short(to, root), names.join(", "))
        });
        let message = format!("circle of imports: {}", steps.collect::<Vec<_>>().join("; "));
        Breach { file: circle[0].to_owned(), line: None, message }
    };
    circles(&imports).into_iter().map(breach).collect()
}

/// The folder of the sources of the crate that begins with `root`.
fn folder(root: &SourceFile) -> &str {
    root.name.rsplit_once('/').map_or("", |(folder, _)| folder)
}

/// The name of a file below `src`.
fn short<'a>(name: &'a str, root: &SourceFile) -> &'a str {
    name.strip_prefix(folder(root)).map_or(name, |name| name.trim_start_matches('/'))
}

/// The path of a module from the root of its crate, or of anything within it.
type Path = Vec<String>;
/// Who imports whom, and by which names.
type Imports = BTreeMap<String, BTreeMap<String, BTreeSet<String>>>;

/// A module: its file, and what can be named in it.
struct Module<'a> {
    file: &'a str,
    items: &'a [Item],
    /// What it defines itself, submodules apart.
    defined: BTreeSet<String>,
    /// What it imports: the name that it has here, and the path as written.
    imported: BTreeMap<String, Path>,
    /// The paths of which it imports everything.
    globs: Vec<Path>,
}

/// A crate: the folder of its sources, and its modules by their paths.
struct Crate<'a> {
    folder: &'a str,
    modules: BTreeMap<Path, Module<'a>>,
}

impl<'a> Crate<'a> {
    fn read(root: &'a SourceFile, sources: &'a [SourceFile]) -> Self {
        let mut read = Self { folder: folder(root), modules: BTreeMap::new() };
        if let Some(file) = &root.rust {
            read.add(Vec::new(), &root.name, &file.items, sources);
        }
        read
    }

    fn add(&mut self, path: Path, file: &'a str, items: &'a [Item], sources: &'a [SourceFile]) {
        let mut module =
            Module { file, items, defined: BTreeSet::new(), imported: BTreeMap::new(), globs: Vec::new() };
        for item in items {
            match item {
                Item::Use(item) => leaves(&item.tree, &mut Vec::new(), &mut |name, path| match name {
                    Some(name) => drop(module.imported.insert(name, path)),
                    None => module.globs.push(path),
                }),
                Item::Mod(item) => self.add_child(&path, item, file, sources),
                _ => module.defined.extend(name_of(item)),
            }
        }
        self.modules.insert(path, module);
    }

    fn add_child(&mut self, parent: &Path, item: &'a syn::ItemMod, file: &'a str, sources: &'a [SourceFile]) {
        if is_for_tests(&item.attrs) {
            return;
        }
        let path = joined(parent, item.ident.to_string());
        match &item.content {
            Some((_, items)) => self.add(path, file, items, sources),
            None => {
                let stem = format!("{}/{}", self.folder, path.join("/"));
                let names = [format!("{stem}.rs"), format!("{stem}/mod.rs")];
                let child = sources.iter().find(|source| names.contains(&source.name));
                if let Some((child, Some(parsed))) = child.map(|child| (child, &child.rust)) {
                    self.add(path, &child.name, &parsed.items, sources);
                }
            }
        }
    }

    /// The file that defines what `path`, written in module `at`, names, and the name that it has there; `None` where that is
    /// another crate's.
    fn definition(&self, at: &Path, path: &[String], depth: usize) -> Option<(&'a str, String)> {
        // Declarations that import one another in a circle do not compile; two crates deep in globs are not worth more.
        const DEEPEST: usize = 16;
        if depth > DEEPEST {
            return None;
        }
        let mut at = at.clone();
        let mut rest = path.iter().peekable();
        match path.first()?.as_str() {
            "crate" => {
                at.clear();
                rest.next();
            }
            "self" => drop(rest.next()),
            _ => {
                while rest.next_if(|name| *name == "super").is_some() {
                    at.pop();
                }
            }
        }
        while let Some(name) = rest.next() {
            let child = joined(&at, name.clone());
            if self.modules.contains_key(&child) {
                at = child;
                continue;
            }
            let module = self.modules.get(&at)?;
            if module.defined.contains(name) {
                return Some((module.file, name.clone()));
            }
            let rest: Vec<String> = rest.cloned().collect();
            if let Some(imported) = module.imported.get(name) {
                let whole: Path = imported.iter().cloned().chain(rest).collect();
                // `use x::y` of a crate x has a path that begins with x, which no module here has.
                return if whole == path { None } else { self.definition(&at, &whole, depth + 1) };
            }
            return module.globs.iter().find_map(|glob| {
                let whole: Path = glob.iter().chain([name]).cloned().chain(rest.clone()).collect();
                self.definition(&at, &whole, depth + 1)
            });
        }
        Some((self.modules.get(&at)?.file, path.last()?.clone()))
    }

    fn imports(&self) -> Imports {
        let mut imports = Imports::new();
        for (at, module) in &self.modules {
            let mut used = Used::default();
            module.items.iter().for_each(|item| used.visit_item(item));
            for path in used.0 {
                let Some((file, name)) = self.definition(at, &path, 0) else { continue };
                if file != module.file {
                    let names = imports.entry(module.file.to_owned()).or_default();
                    names.entry(file.to_owned()).or_default().insert(name);
                }
            }
        }
        imports
    }
}

fn joined(path: &Path, name: String) -> Path {
    path.iter().cloned().chain([name]).collect()
}

/// Calls `found` for every name that `tree` imports, and without a name for a glob.
fn leaves(tree: &UseTree, path: &mut Path, found: &mut impl FnMut(Option<String>, Path)) {
    match tree {
        UseTree::Path(part) => {
            path.push(part.ident.to_string());
            leaves(&part.tree, path, found);
            path.pop();
        }
        UseTree::Group(group) => group.items.iter().for_each(|tree| leaves(tree, path, found)),
        UseTree::Glob(_) => found(None, path.clone()),
        // `use a::b::{self}` imports b.
        UseTree::Name(name) if name.ident == "self" => found(path.last().cloned(), path.clone()),
        UseTree::Name(name) => found(Some(name.ident.to_string()), joined(path, name.ident.to_string())),
        UseTree::Rename(name) => found(Some(name.rename.to_string()), joined(path, name.ident.to_string())),
    }
}

/// The name that `item` defines.
fn name_of(item: &Item) -> Option<String> {
    let name = match item {
        Item::Const(item) => &item.ident,
        Item::Enum(item) => &item.ident,
        Item::Fn(item) => &item.sig.ident,
        Item::Macro(item) => item.ident.as_ref()?,
        Item::Static(item) => &item.ident,
        Item::Struct(item) => &item.ident,
        Item::Trait(item) => &item.ident,
        Item::Type(item) => &item.ident,
        Item::Union(item) => &item.ident,
        _ => return None,
    };
    Some(name.to_string())
}

/// The paths that the items of a module use, submodules and re-exports apart.
#[derive(Default)]
struct Used(Vec<Path>);

impl<'ast> Visit<'ast> for Used {
    fn visit_item(&mut self, item: &'ast Item) {
        let attributes = match item {
            Item::Fn(item) => &item.attrs,
            Item::Impl(item) => &item.attrs,
            Item::Use(item) => &item.attrs,
            _ => return visit::visit_item(self, item),
        };
        if !is_for_tests(attributes) {
            visit::visit_item(self, item);
        }
    }
    fn visit_item_mod(&mut self, _: &'ast syn::ItemMod) {}
    fn visit_vis_restricted(&mut self, _: &'ast syn::VisRestricted) {}
    fn visit_item_use(&mut self, item: &'ast syn::ItemUse) {
        if matches!(item.vis, syn::Visibility::Inherited) {
            leaves(&item.tree, &mut Vec::new(), &mut |_, path| self.0.push(path));
        }
    }
    fn visit_path(&mut self, path: &'ast syn::Path) {
        // A single name is a variable, or was imported by a declaration.
        if path.segments.len() > 1 {
            self.0.push(path.segments.iter().map(|segment| segment.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }
    fn visit_macro(&mut self, call: &'ast syn::Macro) {
        in_tokens(call.tokens.clone(), &mut self.0);
        visit::visit_macro(self, call);
    }
}

/// The paths of more than one name in the tokens of a macro.
fn in_tokens(tokens: TokenStream, paths: &mut Vec<Path>) {
    let mut path = Path::new();
    let mut colons = 0;
    for token in tokens {
        match token {
            TokenTree::Ident(name) => {
                if colons != 2 {
                    paths.push(std::mem::take(&mut path));
                }
                path.push(name.to_string());
                colons = 0;
            }
            TokenTree::Punct(punct) if punct.as_char() == ':' => colons += 1,
            other => {
                paths.push(std::mem::take(&mut path));
                colons = 0;
                if let TokenTree::Group(group) = other {
                    in_tokens(group.stream(), paths);
                }
            }
        }
    }
    paths.push(path);
    paths.retain(|path| path.len() > 1);
}

/// For each file on a circle the shortest circle from it, each circle once.
fn circles(imports: &Imports) -> Vec<Vec<&str>> {
    let mut circles: BTreeMap<BTreeSet<&str>, Vec<&str>> = BTreeMap::new();
    for start in imports.keys() {
        for first in imports[start].keys() {
            if let Some(circle) = shortest(imports, first, start) {
                circles.entry(circle.iter().copied().collect()).or_insert(circle);
            }
        }
    }
    circles.into_values().collect()
}

/// The shortest chain of imports from `from` to `to`, which comes first in it.
fn shortest<'a>(imports: &'a Imports, from: &'a str, to: &'a str) -> Option<Vec<&'a str>> {
    let mut chains = std::collections::VecDeque::from([vec![to, from]]);
    let mut met = BTreeSet::from([from]);
    while let Some(chain) = chains.pop_front() {
        for next in imports.get(*chain.last()?).into_iter().flat_map(BTreeMap::keys) {
            if next == to {
                return Some(chain);
            }
            if met.insert(next) {
                chains.push_back(chain.iter().copied().chain([next.as_str()]).collect());
            }
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let sources: Vec<SourceFile> =
            files.iter().map(|(name, text)| SourceFile::new(format!("crates/x/src/{name}"), *text)).collect();
        check(&sources).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_circle_is_named_with_what_ties_it() {
        let circle = found(&[
            ("a.rs", "use crate::b::B; pub struct A(B);"),
            ("b.rs", "pub struct B; fn f() { crate::a::A::new(); }"),
            ("lib.rs", "mod a; mod b;"),
        ]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        assert_eq!(
            circle[0],
            "crates/x/src/a.rs: circle of imports: a.rs imports b.rs (B); b.rs imports a.rs (A)"
        );
    }

    #[test]
    fn imports_one_way_are_no_circle() {
        let none = found(&[
            ("a.rs", "use crate::b::B; use super::c::{self, C as D}; use std::fmt;"),
            ("b.rs", "use crate::c; pub struct B(c::C);"),
            ("c.rs", "pub struct C; mod inner { use super::C; }"),
            ("lib.rs", "mod a; mod b; mod c; pub use a::A;"),
        ]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn a_re_export_is_no_import_and_is_followed_to_what_defines() {
        let none = found(&[
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "pub struct B;"),
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ]);
        assert!(none.is_empty(), "{none:?}");
        let circle = found(&[
            ("a.rs", "use crate::B; pub struct A;"),
            ("b.rs", "use crate::A; pub struct B;"),
            ("lib.rs", "mod a; mod b; pub use a::A; pub use b::*;"),
        ]);
        assert_eq!(circle.len(), 1, "{circle:?}");
    }

    #[test]
    fn a_parent_and_its_child_may_not_need_each_other() {
        let parent = "mod c; pub struct P; fn f() { c::f(); }";
        let one_way = found(&[("lib.rs", "mod p;"), ("p.rs", parent), ("p/c.rs", "pub fn f() {}")]);
        assert!(one_way.is_empty(), "{one_way:?}");
        let circle =
            found(&[("lib.rs", "mod p;"), ("p.rs", parent), ("p/c.rs", "use super::P; pub fn f() {}")]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        let declared = found(&[
            ("lib.rs", "mod p;"),
            ("p/mod.rs", "mod c; pub use c::f; pub struct P;"),
            ("p/c.rs", "use super::P;"),
        ]);
        assert!(declared.is_empty(), "{declared:?}");
    }

    #[test]
    fn macros_are_seen_and_tests_are_not() {
        let a = "pub fn a() { println!(\"{}\", crate::b::b()); }";
        let circle =
            found(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", "use crate::a::a; pub fn b() {}")]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        let tests = "pub fn b() {} #[cfg(test)] mod tests { use crate::a::a; }";
        let none = found(&[("lib.rs", "mod a; mod b;"), ("a.rs", a), ("b.rs", tests)]);
        assert!(none.is_empty(), "{none:?}");
    }

    #[test]
    fn three_files_make_a_circle() {
        let circle = found(&[
            ("a.rs", "use crate::b::B; pub struct A;"),
            ("b.rs", "use crate::c::C; pub struct B;"),
            ("c.rs", "use crate::a::A; pub struct C;"),
            ("lib.rs", "mod a; mod b; mod c;"),
        ]);
        assert_eq!(circle.len(), 1, "{circle:?}");
        assert!(circle[0].contains("c.rs imports a.rs (A)"), "{circle:?}");
    }
}
