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
