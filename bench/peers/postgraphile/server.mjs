import { createServer } from 'node:http'
import pg from 'pg'
import { postgraphile } from 'postgraphile'
import { makePgService } from 'postgraphile/adaptors/pg'
import { PostGraphileAmberPreset } from 'postgraphile/presets/amber'
import { grafserv } from 'postgraphile/grafserv/node'

/**
 * PostGraphile 5 on node:http, as its documentation has it for production: the Amber preset, NODE_ENV and GRAPHILE_ENV
 * set to production by who starts it, no Ruru, no watching, no explain, no row-level settings (so no transaction round
 * a query), its own prepared statements, plain lists and no connections. Parsed and planned operations are kept by
 * their text, so a plain query with a variable is planned once.
 */
const { connection, poolSize } = JSON.parse(process.argv[2] ?? '{}')
const pool = new pg.Pool({ ...connection, max: poolSize })

const preset = {
  extends: [PostGraphileAmberPreset],
  disablePlugins: ['MutationPlugin', 'MutationPayloadQueryPlugin'],
  pgServices: [makePgService({ pool, schemas: ['peers'], pubsub: false })],
  schema: { defaultBehavior: 'list -connection -insert -update -delete' },
  grafserv: { graphiql: false, websockets: false, watch: false, graphqlPath: '/graphql' },
  grafast: { explain: false },
}

const server = createServer()
const instance = postgraphile(preset)
await instance.createServ(grafserv).addTo(server)
await instance.getSchema()
server.listen(0, '127.0.0.1', () => {
  process.stdout.write(`listening on ${server.address().port}\n`)
})

// An end by a signal would leave no profile behind.
process.once('SIGTERM', () => process.exit(0))
