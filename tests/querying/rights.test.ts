import { beforeAll, describe, expect, test } from 'vitest'
import { createData, type Data } from '../support/data.ts'
import { idleNetwork } from '../support/idle-network.ts'
import { withService } from '../support/per-engine.ts'
import type { TestReply } from '../support/service.ts'

type Ask = (target: string) => { readonly path: string; readonly body: object }

const policies = {
  priced: { price: { per_row: '10' } },
  derivable: { price: { per_row: '10' }, derive: { per_access: '70' } },
  denied: { read: 'public', derive: 'deny' },
  key: { read: 'key' },
  private: { read: 'private' },
  open: { read: 'public' },
} as const

describe('rights and prices for each source of a query', () =>
  withService(
    (service) => {
      let seller: Data
      let buyer: Data
      beforeAll(async () => {
        seller = await createData(service())
        buyer = await createData(service())
        await buyer.publish('mine', [{ id: 'm', n: 1 }])
        for (const [name, policy] of Object.entries(policies)) {
          await seller.create({ name, access_policy: policy })
          await seller.store(name, [
            { id: 'a', n: 1, hidden: 7 },
            { id: 'b', n: 2, hidden: 8 },
          ])
        }
        const offered = { select: ['id', 'n'], filter: ['n'], sort: ['n'] }
        await seller.create({ name: 'part', access_policy: { read: 'public', offered } })
        await seller.store('part', [{ id: 'a', n: 1, hidden: 7 }])
      })

      const at = (target: string) => `"${seller.appId}"::${target}`
      const mine = () => `"${buyer.appId}"::mine`
      const inSql =
        (statement: (from: string) => string): Ask =>
        (target) => ({ path: '/query/sql', body: { sql: statement(at(target)) } })
      const inList =
        (more: object): Ask =>
        (target) => ({ path: '/list', body: { root: `${seller.appId}::${target}`, ...more } })
      const joinedToMine =
        (resolve: object): Ask =>
        (target) => ({
          path: '/list',
          body: {
            root: `${buyer.appId}::mine`,
            limit: 5,
            find: { theirs: { model: `${seller.appId}::${target}`, resolve } },
          },
        })

      const rows: Readonly<Record<string, Ask>> = {
        'rows of SQL': inSql((from) => `SELECT n FROM ${from} LIMIT 2`),
        'rows of a list': inList({ limit: 2 }),
      }

      /** Every way to learn something about a collection without reading its records one by one. */
      const derived: Readonly<Record<string, Ask>> = {
        count: inSql((from) => `SELECT count(*) FROM ${from}`),
        'packed rows': inSql((from) => `SELECT json_agg(n) AS all_of_them FROM ${from}`),
        groups: inSql((from) => `SELECT n, count(*) AS c FROM ${from} GROUP BY n`),
        distinct: inSql((from) => `SELECT DISTINCT n FROM ${from}`),
        'a window': inSql((from) => `SELECT lag(n) OVER (ORDER BY n) AS l FROM ${from} LIMIT 1`),
        'a join': inSql((from) => `SELECT m.id FROM ${mine()} m JOIN ${from} t ON t.n = m.n`),
        'an anti-join': inSql(
          (from) =>
            `SELECT m.id FROM ${mine()} m LEFT JOIN ${from} t ON t.n = m.n WHERE t.n IS NULL`,
        ),
        'a join with itself': inSql(
          (from) => `SELECT a.n FROM ${from} a JOIN ${from} b ON a.n = b.n LIMIT 1`,
        ),
        union: inSql((from) => `SELECT n FROM ${mine()} UNION ALL SELECT n FROM ${from}`),
        except: inSql((from) => `SELECT n FROM ${mine()} EXCEPT SELECT n FROM ${from}`),
        'a sub-query in FROM': inSql((from) => `SELECT s.n FROM (SELECT n FROM ${from}) s LIMIT 1`),
        'a sub-query in IN': inSql(
          (from) => `SELECT id FROM ${mine()} WHERE n IN (SELECT n FROM ${from})`,
        ),
        'a sub-query as a value': inSql(
          (from) => `SELECT (SELECT max(n) FROM ${from}) AS m FROM ${mine()}`,
        ),
        exists: inSql(
          (from) =>
            `SELECT id FROM ${mine()} m WHERE EXISTS (SELECT 1 FROM ${from} t WHERE t.n = m.n)`,
        ),
        with: inSql((from) => `WITH t AS (SELECT n FROM ${from}) SELECT n FROM t LIMIT 1`),
        'an unused with': inSql(
          (from) => `WITH t AS (SELECT n FROM ${from}) SELECT n FROM ${mine()}`,
        ),
        'a LATERAL query': inSql(
          (from) =>
            `SELECT m.id, t.n FROM ${mine()} m, LATERAL (SELECT t.n FROM ${from} t WHERE t.n = m.n LIMIT 1) t`,
        ),
        'a recursion': inSql(
          (from) =>
            `WITH RECURSIVE t AS (SELECT m.n FROM ${mine()} m UNION SELECT t2.n FROM t JOIN ${from} t2 ON t2.n = t.n) SELECT n FROM t LIMIT 1`,
        ),
        'rows made of a field': inSql(
          (from) => `SELECT x FROM ${from} t, generate_series(t.n, t.n) x LIMIT 1`,
        ),
        'a query in what makes rows': inSql(
          (from) => `SELECT x FROM ${mine()} m, generate_series((SELECT max(n) FROM ${from}), 2) x`,
        ),
        'groups of a list': inList({ group_by: 'n', limit: 1 }),
        'a count of a list': inList({ aggregate: { c: { $count: '*' } }, limit: 0 }),
        'distinct values of a list': inList({ distinct: 'n' }),
        'a join of a list': joinedToMine({ find: { n: '$data.n' } }),
        'a join that selects nothing': joinedToMine({ find: {}, select: { id: true } }),
      }
      const every = { ...rows, ...derived }

      const send = (ask: Ask, target: string, headers: Readonly<Record<string, string>> = {}) => {
        const { path, body } = ask(target)
        return service().request('POST', path, { body, headers })
      }
      const outsiders = () => [{}, buyer.headers]
      const readAmount = ({ body }: TestReply) => body.accepts[0].maxAmountRequired

      test.each(Object.entries(every))(
        '%s reads a public free collection for nothing, whoever asks',
        async (_name, ask) => {
          for (const headers of [...outsiders(), seller.headers]) {
            const reply = await send(ask, 'open', headers)
            expect(reply.status, reply.text).toBe(200)
          }
        },
      )

      test.each(Object.entries(every))(
        '%s answers outsiders 404 for a private collection and 401 for one by key, and its owner for nothing',
        async (_name, ask) => {
          for (const headers of outsiders()) {
            expect(await send(ask, 'key', headers)).toMatchObject({
              status: 401,
              body: { code: 'UNAUTHORIZED' },
            })
            const [hidden, gone] = [
              await send(ask, 'private', headers),
              await send(ask, 'missing', headers),
            ]
            const plain = ({ body }: TestReply) =>
              JSON.stringify({ ...body, request_id: '' }).replaceAll(/private|missing/g, '?')
            expect(hidden.status).toBe(404)
            expect(plain(hidden)).toBe(plain(gone))
          }
          for (const target of ['key', 'private'])
            expect((await send(ask, target, seller.headers)).status).toBe(200)
        },
      )

      test.each(Object.entries(rows))(
        '%s is priced as a list of the same number of rows',
        async (_name, ask) => {
          for (const headers of outsiders()) {
            const reply = await send(ask, 'priced', headers)
            expect(reply.status).toBe(402)
            expect(readAmount(reply)).toBe('20')
          }
          expect((await send(ask, 'priced', seller.headers)).status).toBe(200)
        },
      )

      test.each(Object.entries(derived))(
        '%s is denied where the collection has a price or its owner keeps it, and else sold at the derive price',
        async (_name, ask) => {
          for (const headers of outsiders()) {
            for (const target of ['priced', 'denied']) {
              const reply = await send(ask, target, headers)
              expect(reply, reply.text).toMatchObject({
                status: 403,
                body: {
                  code: 'DERIVATION_DENIED',
                  details: { collection: `${seller.appId}::${target}` },
                },
              })
            }
            const offer = await send(ask, 'derivable', headers)
            expect(offer.status, offer.text).toBe(402)
            expect(readAmount(offer)).toBe('70')
          }
          for (const target of ['priced', 'denied', 'derivable'])
            expect((await send(ask, target, seller.headers)).status).toBe(200)
        },
      )

      test('a caller reads his own source for nothing, and not another source in the same query', async () => {
        const sql = (target: string) => ({
          sql: `SELECT count(*) FROM ${at('priced')} p JOIN "${buyer.appId}"::${target} m ON m.n = p.n`,
        })
        await buyer.create({
          name: 'theirs',
          access_policy: { price: { per_row: '1' }, derive: { per_access: '30' } },
        })
        const ask = (body: object, headers: Readonly<Record<string, string>>) =>
          service().request('POST', '/query/sql', { body, headers })
        expect((await ask(sql('mine'), seller.headers)).status).toBe(200)
        expect(readAmount(await ask(sql('theirs'), seller.headers))).toBe('30')
        expect((await ask(sql('theirs'), buyer.headers)).status).toBe(403)
      })

      test.each<[string, Ask]>([
        ['a condition', inSql((from) => `SELECT n FROM ${from} WHERE hidden = 7`)],
        ['an order', inSql((from) => `SELECT n FROM ${from} ORDER BY hidden`)],
        ['a column', inSql((from) => `SELECT hidden FROM ${from}`)],
        ['all columns', inSql((from) => `SELECT * FROM ${from}`)],
        ['an aggregate', inSql((from) => `SELECT max(hidden) AS m FROM ${from}`)],
        [
          'an aggregate filter',
          inSql((from) => `SELECT count(*) FILTER (WHERE hidden > 7) AS m FROM ${from}`),
        ],
        ['a group', inSql((from) => `SELECT count(*) AS c FROM ${from} GROUP BY hidden`)],
        [
          'a join',
          inSql((from) => `SELECT m.id FROM ${mine()} m JOIN ${from} t ON t.hidden = m.n`),
        ],
        ['a sub-query', inSql((from) => `SELECT s.h FROM (SELECT hidden AS h FROM ${from}) s`)],
        [
          'a correlated sub-query',
          inSql(
            (from) =>
              `SELECT n FROM ${from} t WHERE EXISTS (SELECT 1 FROM ${mine()} m WHERE m.n = t.hidden)`,
          ),
        ],
        ['a group of a list', inList({ group_by: 'hidden' })],
        ['an aggregate of a list', inList({ aggregate: { m: { $min: 'hidden' } } })],
        ['a join of a list', joinedToMine({ find: { hidden: 7 }, select: { n: true } })],
        ['a joined record whole', joinedToMine({ find: { n: 1 } })],
        [
          'what a join refers to',
          (target) => ({
            path: '/list',
            body: {
              root: `${seller.appId}::${target}`,
              select: { n: true },
              find: {
                m: { model: `${buyer.appId}::mine`, resolve: { find: { n: '$data.hidden' } } },
              },
            },
          }),
        ],
      ])('%s cannot use a field that is not offered', async (_name, ask) => {
        const reply = await send(ask, 'part', buyer.headers)
        expect(reply, reply.text).toMatchObject({
          status: 403,
          body: { code: 'FIELD_NOT_OFFERED' },
        })
        expect((await send(ask, 'part', seller.headers)).status).toBe(200)
      })

      test.each([
        (from: string) => `SELECT n FROM ${mine()} ORDER BY (SELECT max(n) FROM ${from}) LIMIT 1`,
        (from: string) => `SELECT n FROM ${mine()} LIMIT (SELECT max(n) FROM ${from})`,
        (from: string) => `SELECT n FROM ${mine()} OFFSET (SELECT max(n) FROM ${from})`,
        (from: string) =>
          `SELECT n FROM ${mine()} GROUP BY n HAVING n < (SELECT max(n) FROM ${from})`,
        (from: string) =>
          `SELECT count(*) AS c FROM ${mine()} GROUP BY (SELECT max(n) FROM ${from})`,
        (from: string) =>
          `SELECT a.n FROM ${mine()} a JOIN ${mine()} b ON a.n < (SELECT max(n) FROM ${from})`,
        (from: string) =>
          `SELECT CASE WHEN EXISTS (SELECT 1 FROM ${from}) THEN 1 END AS c FROM ${mine()}`,
        (from: string) => `SELECT abs((SELECT max(n) FROM ${from})) AS c FROM ${mine()}`,
        (from: string) =>
          `SELECT n FROM ${mine()} WHERE n BETWEEN 0 AND (SELECT max(n) FROM ${from})`,
        (from: string) => `SELECT n FROM ${mine()} WHERE n IN (1, (SELECT max(n) FROM ${from}))`,
        (from: string) =>
          `SELECT n FROM ${mine()} WHERE NOT (n = (SELECT max(n) FROM ${from})) IS TRUE`,
        (from: string) =>
          `SELECT count(*) FILTER (WHERE n < (SELECT max(n) FROM ${from})) AS c FROM ${mine()}`,
        (from: string) =>
          `SELECT json_agg(n ORDER BY (SELECT max(n) FROM ${from})) AS c FROM ${mine()}`,
        (from: string) =>
          `SELECT row_number() OVER (PARTITION BY (SELECT max(n) FROM ${from})) AS c FROM ${mine()}`,
        (from: string) =>
          `SELECT n FROM ${mine()} UNION SELECT n FROM ${mine()} ORDER BY (SELECT max(n) FROM ${from})`,
        (from: string) =>
          `SELECT n FROM ${mine()} UNION (SELECT 1 AS n FROM ${mine()} WHERE EXISTS (SELECT 1 FROM ${from}))`,
        (from: string) =>
          `WITH t AS (SELECT n FROM ${mine()} WHERE EXISTS (SELECT 1 FROM ${from})) SELECT n FROM t`,
        (from: string) =>
          `SELECT coalesce(NULL, (WITH t AS (SELECT n FROM ${from}) SELECT max(n) FROM t)) AS c FROM ${mine()}`,
        (from: string) => `SELECT cast((SELECT max(n) FROM ${from}) AS text) AS c FROM ${mine()}`,
        (from: string) =>
          `SELECT x FROM ${mine()} m, unnest(ARRAY[m.n, (SELECT max(n) FROM ${from})]) WITH ORDINALITY AS t (x, y)`,
        (from: string) =>
          `SELECT m.n FROM ${mine()} m LEFT JOIN LATERAL (SELECT 1 AS one WHERE EXISTS (SELECT 1 FROM ${from} f WHERE f.n = m.n)) t ON true`,
        (from: string) =>
          `WITH RECURSIVE t AS (SELECT m.n FROM ${mine()} m UNION SELECT x FROM t, generate_series(t.n, (SELECT max(n) FROM ${from})) x) SELECT n FROM t`,
        (from: string) =>
          `SELECT m.n FROM ${mine()} m ORDER BY jsonb_build_array(m.n) <-> (SELECT jsonb_agg(n) FROM ${from})`,
      ])('no place of a statement hides a source: %s', async (statement) => {
        const refused = await send(inSql(statement), 'priced', buyer.headers)
        expect([400, 403], refused.text).toContain(refused.status)
        expect(refused.body.code).toMatch(/^(DERIVATION_DENIED|VALIDATION_FAILED)$/)
        // A refused statement is refused for its owner too, and a possible one works for the owner.
        const own = await send(inSql(statement), 'priced', seller.headers)
        expect(own.status, own.text).toBe(refused.status === 400 ? 400 : 200)
        if (refused.status === 403)
          expect((await send(inSql(statement), 'private', buyer.headers)).status).toBe(404)
      })

      test.each(['$first', '$last', '$min', '$max', '$count', '$countDistinct'])(
        '%s over joined records uses all their fields, but for their number',
        async (aggregate) => {
          const ask: Ask = (target) => ({
            path: '/list',
            body: {
              root: `${buyer.appId}::mine`,
              find: {
                theirs: { model: `${seller.appId}::${target}`, resolve: { find: { n: 1 } } },
              },
              aggregate: { all_of_it: { [aggregate]: 'theirs' } },
            },
          })
          const reply = await send(ask, 'part', buyer.headers)
          expect(reply.status, reply.text).toBe(aggregate === '$count' ? 200 : 403)
          expect(reply.text).not.toContain('"hidden"')
          expect((await send(ask, 'part', seller.headers)).status).toBe(200)
        },
      )

      test('fields that only declared types bring into a statement are judged too', async () => {
        const fields = { secret: { type: 'number' }, label: { type: 'string' } }
        const offered = { select: ['label'], filter: ['label'], sort: ['label'] }
        const made = await seller.create({
          name: 'vault',
          schema_definition: { fields },
          access_policy: { read: 'public', offered },
        })
        expect(made.status, made.text).toBe(201)
        await seller.store('vault', [{ id: 'v', secret: 4711, label: 'x' }])
        const guess = { secret: { type: 'number' }, mark: { type: 'string' } }
        await buyer.create({ name: 'guesses', schema_definition: { fields: guess } })
        await buyer.store('guesses', [{ id: 'g', secret: 4711, mark: 'yes' }])
        // NATURAL joins by what both sides declare, which is known only once both may be read.
        const sql = `SELECT g.mark, v.label FROM "${buyer.appId}"::guesses g NATURAL JOIN ${at('vault')} v`
        const send = (headers: Readonly<Record<string, string>>) =>
          service().request('POST', '/query/sql', { body: { sql }, headers })
        expect(await send(buyer.headers)).toMatchObject({
          status: 403,
          body: { code: 'FIELD_NOT_OFFERED' },
        })
      })

      test('history is for those who may Read every source whose history is asked for', async () => {
        const sql = `SELECT t.n FROM ${at('open')} t JOIN ${mine()} m ON m.n = t.n`
        for (const headers of [...outsiders(), seller.headers]) {
          const body = { sql, include_history: true }
          const { status } = await service().request('POST', '/query/sql', { body, headers })
          expect(status).toBe(403)
        }
      })

      test('the amount of a 402 does not depend on what is stored', async () => {
        for (const [name, ask] of Object.entries(every)) {
          const before = readAmount(await send(ask, 'derivable'))
          await seller.store('derivable', [{ id: `new ${name}`, n: 1 }])
          expect(readAmount(await send(ask, 'derivable')), name).toBe(before)
        }
      })
    },
    { config: { networks: [idleNetwork] } },
  ))
