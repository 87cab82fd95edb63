/**
 * The table of imports: each room imports itself and the rooms named here, nothing else (scripts/check-rooms.mjs).
 * The layers of the server, from the first to the last, are: engines, model, projections, services, operations,
 * operator, app. Each imports only layers that stand before it.
 */
const server = 'packages/server/src'

const engines = [
  'base',
  'database',
  'chain',
  'sealing',
  'query',
  'views',
  'x402',
  'upstream',
  'devnet',
  'celestia',
  'anchors',
  'witness',
  'blobs',
  'http',
  'config',
]
const shared = ['contract', 'verify', ...engines]

export const rooms = {
  contract: { path: 'packages/contract/src', may: [] },
  verify: { path: 'packages/verify/src', may: [] },

  // The engines know no application.
  base: { path: `${server}/base`, may: ['contract', 'verify'] },
  database: { path: `${server}/database`, may: ['base', 'contract'] },
  chain: { path: `${server}/chain`, may: ['base', 'contract', 'database', 'verify'] },
  sealing: { path: `${server}/sealing`, may: ['base'] },
  query: { path: `${server}/query`, may: ['base', 'contract'] },
  views: { path: `${server}/views`, may: ['base', 'contract', 'query'] },
  x402: { path: `${server}/x402`, may: ['base', 'contract', 'database', 'verify'] },
  upstream: { path: `${server}/upstream`, may: ['base', 'contract'] },
  devnet: { path: `${server}/devnet`, may: ['base', 'x402'] },
  celestia: { path: `${server}/celestia`, may: ['base', 'database', 'verify', 'x402'] },
  anchors: { path: `${server}/anchors`, may: ['base', 'celestia', 'verify', 'x402'] },
  witness: {
    path: `${server}/witness`,
    may: ['base', 'chain', 'database', 'devnet', 'verify', 'x402'],
  },
  blobs: { path: `${server}/blobs`, may: ['base'] },
  http: { path: `${server}/http`, may: ['base', 'contract'] },
  config: {
    path: `${server}/config`,
    may: ['base', 'blobs', 'contract', 'database', 'query', 'sealing', 'x402', 'upstream', 'http'],
  },

  // The model is pure: no SQL, no clock, no input or output.
  model: {
    path: `${server}/model`,
    may: ['contract', 'verify', 'base', 'chain', 'query', 'views', 'http'],
  },
  projections: {
    path: `${server}/projections`,
    may: ['contract', 'verify', 'base', 'database', 'chain', 'query', 'views', 'model'],
  },
  services: { path: `${server}/services`, may: [...shared, 'model', 'projections'] },
  operations: {
    path: `${server}/operations`,
    may: [...shared, 'model', 'projections', 'services'],
    // Areas never import each other: two of them share by the model or by a service.
    areas: true,
  },
  operator: {
    path: `${server}/operator`,
    may: [...shared, 'model', 'projections', 'services', 'operations'],
  },
  app: {
    path: `${server}/(main|app|start-problem)`,
    may: [...shared, 'model', 'projections', 'services', 'operations', 'operator'],
  },

  cli: {
    path: 'packages/cli/src',
    may: [...shared, 'model', 'projections', 'services', 'operator', 'app'],
  },
}
