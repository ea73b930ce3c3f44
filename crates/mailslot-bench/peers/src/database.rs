//! A database of one run.

use anyhow::Context as _;
use tokio_postgres::{Client, NoTls};

/// Dropped by [`Database::drop`].
pub(crate) struct Database {
    url: String,
    name: String,
    server: Client,
}

impl Database {
    pub(crate) async fn create(server: &str, peer: &str) -> anyhow::Result<Self> {
        let name = format!("mailslot_peers_{}_{}", peer.replace('-', "_"), std::process::id());
        let client = connect(server).await?;
        client.batch_execute(&format!("CREATE DATABASE {name}")).await.context("cannot make a database")?;
        Ok(Self { url: in_database(server, &name), name, server: client })
    }

    pub(crate) fn url(&self) -> &str {
        &self.url
    }

    /// Drops it, whoever is still connected.
    pub(crate) async fn drop(self) -> anyhow::Result<()> {
        let sql = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        self.server.batch_execute(&sql).await.context("cannot drop the database")
    }
}

/// The same URL with another database.
fn in_database(url: &str, name: &str) -> String {
    let (base, query) = url.split_once('?').map_or((url, None), |(base, query)| (base, Some(query)));
    let authority = base.find("://").map_or(0, |at| at + 3);
    let end = base[authority..].find('/').map_or(base.len(), |at| authority + at);
    let query = query.map_or_else(String::new, |query| format!("?{query}"));
    format!("{}/{name}{query}", &base[..end])
}

/// Connects; the connection lives as long as the client.
pub(crate) async fn connect(url: &str) -> anyhow::Result<Client> {
    let (client, connection) =
        tokio_postgres::connect(url, NoTls).await.context("cannot connect to PostgreSQL")?;
    tokio::spawn(async move { drop(connection.await) });
    Ok(client)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_database_is_replaced() {
        assert_eq!(in_database("postgres://u:p@h:1/a", "b"), "postgres://u:p@h:1/b");
        assert_eq!(in_database("postgres://h", "b"), "postgres://h/b");
        assert_eq!(in_database("postgres://h/a?sslmode=disable", "b"), "postgres://h/b?sslmode=disable");
    }
}
