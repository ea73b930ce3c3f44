//! Reads `#[message(…)]`.

use crate::contract::ContractLiterals;
use proc_macro2::TokenStream;
use quote::quote;
use syn::meta::ParseNestedMeta;
use syn::parse::{Parse, ParseStream, Parser};
use syn::{Attribute, Error, Lit, LitStr, Path, Result, Token, Type, parenthesized, parse_quote};

/// All `#[message(…)]` attributes of one type, taken together.
#[derive(Default)]
pub(crate) struct MessageAttribute {
    /// What stands beside the shapes, or all there is for a type without parameters.
    pub(crate) fields: Fields,
    /// The closed shapes of a generic type.
    pub(crate) shapes: Vec<Shape>,
    krate: Option<Path>,
}

/// One `shape(Type, name = …, version = …)`.
pub(crate) struct Shape {
    pub(crate) ty: Type,
    pub(crate) fields: Fields,
}

/// The keys that stand both at the top and in a shape.
#[derive(Default)]
pub(crate) struct Fields {
    pub(crate) contract: ContractLiterals,
    pub(crate) codec: Option<Path>,
}

impl MessageAttribute {
    /// Reads the attributes of a type; those of other macros are passed over.
    pub(crate) fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut found = Self::default();
        for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident("message")) {
            attribute.parse_nested_meta(|meta| found.take(&meta))?;
        }
        Ok(found)
    }

    /// The path of the crate that has `Message` and `Json`.
    pub(crate) fn krate(&self) -> TokenStream {
        self.krate.as_ref().map_or_else(|| quote!(::mailslot), |path| quote!(#path))
    }

    fn take(&mut self, meta: &ParseNestedMeta<'_>) -> Result<()> {
        if meta.path.is_ident("crate") {
            set(&mut self.krate, meta, path_value(meta)?)
        } else if meta.path.is_ident("shape") {
            let content;
            parenthesized!(content in meta.input);
            self.shapes.push(content.parse()?);
            Ok(())
        } else {
            self.fields.take(meta, "`name`, `version`, `codec`, `crate` or `shape(…)`")
        }
    }
}

impl Parse for Shape {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let ty = input.parse()?;
        let mut fields = Fields::default();
        if !input.is_empty() {
            input.parse::<Token![,]>()?;
            let rest: TokenStream = input.parse()?;
            syn::meta::parser(|meta| fields.take(&meta, "`name`, `version` or `codec` after the type"))
                .parse2(rest)?;
        }
        Ok(Self { ty, fields })
    }
}

impl Fields {
    fn take(&mut self, meta: &ParseNestedMeta<'_>, known: &str) -> Result<()> {
        if meta.path.is_ident("name") {
            set(&mut self.contract.name, meta, literal(meta, "a string literal such as \"shop.order\"")?)
        } else if meta.path.is_ident("version") {
            set(&mut self.contract.version, meta, literal(meta, "a whole number such as 1")?)
        } else if meta.path.is_ident("codec") {
            set(&mut self.codec, meta, path_value(meta)?)
        } else {
            Err(meta.error(format!("unknown key; write {known}")))
        }
    }
}

fn set<T>(slot: &mut Option<T>, meta: &ParseNestedMeta<'_>, value: T) -> Result<()> {
    if slot.is_some() {
        return Err(meta.error("this key is given twice; keep one of them"));
    }
    *slot = Some(value);
    Ok(())
}

/// A literal, because a contract that is computed could change without anyone seeing it in a review.
fn literal(meta: &ParseNestedMeta<'_>, wanted: &str) -> Result<Lit> {
    let value = meta.value()?;
    value.parse().map_err(|error| Error::new(error.span(), format!("expected {wanted}")))
}

/// A path, bare or in quotes as serde takes it.
fn path_value(meta: &ParseNestedMeta<'_>) -> Result<Path> {
    let value = meta.value()?;
    if value.peek(LitStr) {
        return value.parse::<LitStr>()?.parse();
    }
    if value.peek(Token![crate]) && !value.peek2(Token![::]) {
        value.parse::<Token![crate]>()?;
        return Ok(parse_quote!(crate));
    }
    value.parse()
}
