//! The changes of one file.

use std::fmt;
use std::ops::Range;
use std::path::PathBuf;

use proc_macro2::LineColumn;
use syn::spanned::Spanned;
use syn::visit::{self, Visit};
use syn::{BinOp, Block, Expr, ReturnType, Signature, Type, UnOp};

/// One change.
#[derive(Clone)]
pub(crate) struct Mutant {
    pub(crate) number: usize,
    pub(crate) file: PathBuf,
    line: usize,
    function: String,
    change: String,
    /// How many of this function have the same change and come before.
    same: usize,
}

impl Mutant {
    /// The part that stays the same when other lines of its file change.
    pub(crate) fn key(&self) -> String {
        let Mutant { function, change, same, .. } = self;
        format!("{}\t{function}\t{change}\t{same}", self.path())
    }

    /// Its file below the sources of the library.
    fn path(&self) -> String {
        let path = self.file.display().to_string();
        path.rsplit_once("/src/").map_or(path.clone(), |(_, path)| path.to_owned())
    }
}

impl fmt::Display for Mutant {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mutant { number, line, function, change, .. } = self;
        write!(out, "{number}\t{}:{line}\t{function}\t{change}", self.path())
    }
}

/// The text in the sources instead.
enum Edit {
    /// Text before and behind a place, of the change with this number.
    Around {
        bytes: Range<usize>,
        number: usize,
        left: Range<usize>,
        right: Range<usize>,
        operator: &'static str,
    },
    /// Text without its first byte, which is a `!`.
    Without { bytes: Range<usize>, number: usize },
    /// A return at the start of a block.
    Return { at: usize, number: usize, value: &'static str },
}

/// The mutants of a file, and the text that has all of them. `first` is the number of the first;
/// those in `broken` do not compile, and are left out.
pub(crate) fn mutate(
    file: PathBuf,
    text: &str,
    first: usize,
    broken: &[usize],
) -> syn::Result<(Vec<Mutant>, String)> {
    let starts = std::iter::once(0).chain(text.match_indices('\n').map(|(at, _)| at + 1)).collect();
    let mut finder = Finder {
        file,
        text,
        starts,
        next: first,
        function: String::new(),
        mutants: Vec::new(),
        edits: Vec::new(),
    };
    finder.visit_file(&syn::parse_file(text)?);
    let Finder { mut mutants, mut edits, .. } = finder;
    mutants.retain(|mutant| !broken.contains(&mutant.number));
    edits.retain(|edit| !broken.contains(&edit.number()));
    Ok((mutants, rewritten(text, 0..text.len(), &edits)))
}

impl Edit {
    fn number(&self) -> usize {
        match self {
            Edit::Around { number, .. }
            | Edit::Without { number, .. }
            | Edit::Return { number, .. } => *number,
        }
    }

    fn bytes(&self) -> Range<usize> {
        match self {
            Edit::Around { bytes, .. } | Edit::Without { bytes, .. } => bytes.clone(),
            Edit::Return { at, .. } => *at..*at,
        }
    }
}

/// The text of a range with its edits; an edit may lie within another.
fn rewritten(text: &str, range: Range<usize>, edits: &[Edit]) -> String {
    let is_within = |edit: &&Edit| {
        let bytes = edit.bytes();
        range.start <= bytes.start && bytes.end <= range.end
    };
    let mut inside: Vec<&Edit> = edits.iter().filter(is_within).collect();
    // The outermost first; of those at one place the longest.
    inside.sort_by_key(|edit| {
        (edit.bytes().start, std::cmp::Reverse(edit.bytes().end), edit.number())
    });
    let (mut out, mut at) = (String::new(), range.start);
    for edit in inside {
        let bytes = edit.bytes();
        if bytes.start < at {
            continue;
        }
        out += &text[at..bytes.start];
        at = bytes.end;
        out += &replaced(text, edit, edits);
    }
    out + &text[at..range.end]
}

fn replaced(text: &str, edit: &Edit, edits: &[Edit]) -> String {
    let number = edit.number();
    let switch = format!("crate::mutant_switch::is({number})");
    // The edits within this one; `rewritten` would find this one again.
    let others = |bytes: &Range<usize>| {
        let inner: Vec<Edit> =
            edits.iter().filter(|other| other.number() != number).map(Edit::copied).collect();
        rewritten(text, bytes.clone(), &inner)
    };
    match edit {
        Edit::Around { bytes, left, right, operator, .. } => {
            let [plain_left, plain_right] = [&text[left.clone()], &text[right.clone()]];
            format!(
                "(if {switch} {{ ({plain_left}) {operator} ({plain_right}) }} else {{ {} }})",
                others(bytes)
            )
        }
        Edit::Without { bytes, .. } => {
            format!(
                "(if {switch} {{ {} }} else {{ {} }})",
                &text[bytes.start + 1..bytes.end],
                others(bytes)
            )
        }
        Edit::Return { value, .. } => format!(" if {switch} {{ return {value}; }} "),
    }
}

impl Edit {
    fn copied(&self) -> Edit {
        match self {
            Edit::Around { bytes, number, left, right, operator } => Edit::Around {
                bytes: bytes.clone(),
                number: *number,
                left: left.clone(),
                right: right.clone(),
                operator,
            },
            Edit::Without { bytes, number } => {
                Edit::Without { bytes: bytes.clone(), number: *number }
            }
            Edit::Return { at, number, value } => Edit::Return { at: *at, number: *number, value },
        }
    }
}

/// Finds what can be changed.
struct Finder<'a> {
    file: PathBuf,
    text: &'a str,
    /// Where each line starts.
    starts: Vec<usize>,
    next: usize,
    function: String,
    mutants: Vec<Mutant>,
    edits: Vec<Edit>,
}

impl Finder<'_> {
    fn byte(&self, place: LineColumn) -> usize {
        let start = self.starts[place.line - 1];
        let line = &self.text[start..];
        start + line.char_indices().nth(place.column).map_or(line.len(), |(at, _)| at)
    }

    fn bytes(&self, of: &impl Spanned) -> Range<usize> {
        let span = of.span();
        self.byte(span.start())..self.byte(span.end())
    }

    fn add(&mut self, line: usize, change: String) -> usize {
        let number = self.next;
        self.next += 1;
        let (file, function) = (self.file.clone(), self.function.clone());
        let is_same = |other: &&Mutant| other.function == function && other.change == change;
        let same = self.mutants.iter().filter(is_same).count();
        self.mutants.push(Mutant { number, file, line, function, change, same });
        number
    }

    fn enter(&mut self, signature: &Signature, block: &Block) {
        self.function = signature.ident.to_string();
        if block.stmts.is_empty() {
            return;
        }
        let line = signature.ident.span().start().line;
        for value in values(&signature.output) {
            let at = self.byte(block.brace_token.span.open().end());
            let number = self.add(line, format!("returns {value} at once"));
            self.edits.push(Edit::Return { at, number, value });
        }
    }
}

impl<'ast> Visit<'ast> for Finder<'_> {
    fn visit_item_mod(&mut self, item: &'ast syn::ItemMod) {
        // Those with a condition are tests and models.
        if item.attrs.is_empty() {
            visit::visit_item_mod(self, item);
        }
    }

    fn visit_item_fn(&mut self, item: &'ast syn::ItemFn) {
        if item.sig.constness.is_none() {
            self.enter(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_impl_item_fn(&mut self, item: &'ast syn::ImplItemFn) {
        if item.sig.constness.is_none() {
            self.enter(&item.sig, &item.block);
            self.visit_block(&item.block);
        }
    }

    fn visit_expr_binary(&mut self, expr: &'ast syn::ExprBinary) {
        if let Some(operator) = other(&expr.op)
            && !has_let(&Expr::Binary(expr.clone()))
        {
            let [bytes, left, right] =
                [self.bytes(expr), self.bytes(&expr.left), self.bytes(&expr.right)];
            let change = format!(
                "`{}`: {operator} instead",
                self.text[bytes.clone()].split_whitespace().collect::<Vec<_>>().join(" ")
            );
            let number = self.add(expr.op.span().start().line, change);
            self.edits.push(Edit::Around { bytes, number, left, right, operator });
        }
        visit::visit_expr_binary(self, expr);
    }

    fn visit_expr_unary(&mut self, expr: &'ast syn::ExprUnary) {
        if matches!(expr.op, UnOp::Not(_)) {
            let bytes = self.bytes(expr);
            let number = self.add(
                expr.span().start().line,
                format!("`{}` without !", &self.text[bytes.clone()]),
            );
            self.edits.push(Edit::Without { bytes, number });
        }
        visit::visit_expr_unary(self, expr);
    }

    // Values that are computed when the library is built cannot be switched.
    fn visit_item_const(&mut self, _: &'ast syn::ItemConst) {}
    fn visit_impl_item_const(&mut self, _: &'ast syn::ImplItemConst) {}
    fn visit_item_static(&mut self, _: &'ast syn::ItemStatic) {}
    fn visit_expr_const(&mut self, _: &'ast syn::ExprConst) {}
    fn visit_type(&mut self, _: &'ast Type) {}
    fn visit_pat(&mut self, _: &'ast syn::Pat) {}
    fn visit_attribute(&mut self, _: &'ast syn::Attribute) {}
}

/// Whether a chain of conditions binds names.
fn has_let(expr: &Expr) -> bool {
    match expr {
        Expr::Let(_) => true,
        Expr::Binary(binary) => has_let(&binary.left) || has_let(&binary.right),
        _ => false,
    }
}

/// The operator that replaces another.
fn other(operator: &BinOp) -> Option<&'static str> {
    Some(match operator {
        BinOp::Lt(_) => "<=",
        BinOp::Le(_) => "<",
        BinOp::Gt(_) => ">=",
        BinOp::Ge(_) => ">",
        BinOp::Eq(_) => "!=",
        BinOp::Ne(_) => "==",
        BinOp::And(_) => "||",
        BinOp::Or(_) => "&&",
        BinOp::Add(_) => "-",
        BinOp::Sub(_) => "+",
        BinOp::Mul(_) => "/",
        BinOp::Div(_) => "*",
        BinOp::Rem(_) => "/",
        BinOp::BitAnd(_) => "|",
        BinOp::BitOr(_) => "&",
        BinOp::Shl(_) => ">>",
        BinOp::Shr(_) => "<<",
        BinOp::AddAssign(_) => "-=",
        BinOp::SubAssign(_) => "+=",
        _ => return None,
    })
}

/// The values that a function could return instead of doing anything.
fn values(output: &ReturnType) -> &'static [&'static str] {
    let ReturnType::Type(_, output) = output else { return &["()"] };
    let Type::Path(path) = &**output else { return &[] };
    let last = path.path.segments.last().expect("a path has a name");
    let argument = |last: &syn::PathSegment| match &last.arguments {
        syn::PathArguments::AngleBracketed(arguments) => {
            arguments.args.first().map(|argument| match argument {
                syn::GenericArgument::Type(Type::Tuple(tuple)) if tuple.elems.is_empty() => {
                    "()".to_owned()
                }
                syn::GenericArgument::Type(Type::Path(path)) => {
                    path.path.segments.last().expect("a path has a name").ident.to_string()
                }
                _ => String::new(),
            })
        }
        _ => None,
    };
    match (last.ident.to_string().as_str(), argument(last).as_deref()) {
        ("bool", _) => &["true", "false"],
        ("u8" | "u16" | "u32" | "u64" | "usize" | "i32" | "i64", _) => &["0", "1"],
        ("Option", _) => &["None"],
        ("Vec", _) => &["Vec::new()"],
        ("Lsn", _) => &["Lsn::ZERO"],
        ("Result", Some("()")) => &["Ok(())"],
        ("Result", Some("bool")) => &["Ok(true)", "Ok(false)"],
        ("Result", Some("Option")) => &["Ok(None)"],
        ("Result", Some("u64" | "usize")) => &["Ok(0)", "Ok(1)"],
        ("Result", Some("Lsn")) => &["Ok(Lsn::ZERO)"],
        _ => &[],
    }
}
