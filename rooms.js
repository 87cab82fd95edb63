/** Who may import whom. A room may always import itself; what is not listed is forbidden (scripts/check-rooms.mjs). */
export const rooms = {
  contract: { path: 'packages/contract/src', may: [] },
  verify: { path: 'packages/verify/src', may: [] },
  base: { path: 'packages/server/src/base', may: ['contract'] },
  database: { path: 'packages/server/src/database', may: ['base', 'contract'] },
  chain: { path: 'packages/server/src/chain', may: ['base', 'contract', 'database', 'verify'] },
  query: { path: 'packages/server/src/query', may: ['base', 'contract'] },
  x402: { path: 'packages/server/src/x402', may: ['base', 'contract', 'database'] },
  devnet: { path: 'packages/server/src/devnet', may: ['base', 'x402'] },
  http: { path: 'packages/server/src/http', may: ['base', 'contract'] },
  domains: {
    path: 'packages/server/src/domains',
    may: ['base', 'contract', 'verify', 'database', 'chain', 'query', 'x402', 'http', 'devnet'],
  },
  main: {
    path: 'packages/server/src/(main|app|config)',
    may: [
      'base',
      'contract',
      'verify',
      'database',
      'chain',
      'query',
      'x402',
      'devnet',
      'http',
      'domains',
    ],
  },
  cli: {
    path: 'packages/cli/src',
    may: ['contract', 'verify', 'base', 'main', 'domains', 'chain', 'database', 'devnet'],
  },
}

/**
 * Which domain may call which (a test runs over these edges: they are acyclic), and by which files it is
 * entered; the file that bears the domain's name where nothing is said. `domains/*.ts` belongs to all.
 */
export const domains = {
  ledger: [],
  tenancy: {
    may: ['ledger'],
    doors: [
      'tenancy',
      'applications',
      'keys',
      'catalog',
      'definitions',
      'define',
      'policy',
      'price',
      'root',
      'as-of',
      'arrivals',
      'alone',
      'record-projection',
      'data-projection',
      'field-price',
      'index-ddl',
    ],
  },
  access: { may: ['tenancy'], doors: ['access', 'credentials', 'wallet-signature'] },
  service: { may: [], doors: ['service', 'secrets'] },
  keys: { may: ['tenancy'], doors: ['new-key', 'key-use'] },
  collections: {
    may: ['access', 'tenancy'],
    doors: [
      'collection-store',
      'collection-view',
      'index-names',
      'leading-index',
      'new-collection',
      'record-schema',
      'relation-view',
      'shard-keys',
      'visibility',
    ],
  },
  applications: ['access', 'collections', 'keys', 'tenancy'],
  indexes: { may: ['collections', 'tenancy'], doors: ['index-builder', 'query-statistics'] },
  pricing: ['access', 'collections', 'tenancy'],
  payments: {
    may: ['ledger', 'tenancy'],
    doors: [
      'payments',
      'kept-answer',
      'presented',
      'purchase',
      'sell-write',
      'claim-store',
      'network-pin',
      'reconciler',
      'sweeper',
    ],
  },
  records: {
    may: ['access', 'collections', 'payments', 'tenancy'],
    doors: ['tickets', 'stored-records', 'prepare-records', 'record-names', 'record-store'],
  },
  batch: ['access', 'collections', 'payments', 'records', 'tenancy'],
  relations: ['collections', 'tenancy'],
  migrations: {
    may: ['access', 'collections', 'records', 'tenancy'],
    doors: ['migration-task'],
  },
  tasks: ['migrations', 'records', 'tenancy'],
  listing: ['collections', 'tenancy'],
  chains: [],
  wallets: [],
}
