import { sql } from '../../../packages/server/src/database/sql.ts'
import { createTestDatabase } from '../../../packages/server/src/database/testing.ts'
import { data } from '../../../packages/server/src/query/sql/orders.test-data.ts'
import {
  makeNativeTables,
  normalize,
} from '../../../packages/server/src/query/sql/typed-tables.test-support.ts'
import { makeData } from '../../support/data.ts'
import { startTestService, type TestReply } from '../../support/service.ts'

/** `refused` by us; `skipped`: PostgreSQL refuses it. */
type Outcome = 'same' | 'refused' | 'skipped' | 'wrong'

export type Verdict = { readonly outcome: Outcome; readonly about: string }

export type Place = {
  /** Asks the service by HTTP and PostgreSQL directly, over declared fields or undeclared ones. */
  readonly compare: (text: string, isDeclared: boolean) => Promise<Verdict>
  readonly close: () => Promise<void>
}

const types = { string: 'string', number: 'number', boolean: 'boolean' } as const
/** Fields whose values are times; all others have the type of their first value. */
const times: ReadonlySet<string> = new Set(['at'])

/** Starts a service with two applications, of which one declares its fields, beside tables with the same values. */
export async function openPlace(): Promise<Place> {
  const [service, store] = [await startTestService(), await createTestDatabase()]
  const askPostgres = await makeNativeTables((text, values = []) =>
    store.database.query(sql.compiled(text, values)),
  )
  const plain = makeData(service, await service.createApp('plain'))
  const declared = makeData(service, await service.createApp('declared'))
  for (const [name, records] of Object.entries(data)) {
    const fields = Object.fromEntries(
      Object.keys(records[0] ?? {}).map((field) => [field, { type: findType(field, records) }]),
    )
    expectDone(await plain.create({ name }))
    expectDone(await declared.create({ name, schema_definition: { fields } }))
    for (const app of [plain, declared]) expectDone(await app.store(name, records))
  }

  const compare = async (text: string, isDeclared: boolean): Promise<Verdict> => {
    const expected = await askPostgres(text).catch((error: unknown) => String(error))
    const app = isDeclared ? declared : plain
    const { text: asked, lists } = takeLists(text.replaceAll('app::', `${app.appId}::`))
    const reply = await service.request('POST', '/query/sql', {
      body: { sql: asked, params: lists },
      headers: app.headers,
    })
    const about = `${reply.status} ${reply.text.slice(0, 500)}`
    if (reply.status !== 200 && reply.status !== 400 && reply.status !== 413)
      return { outcome: 'wrong', about }
    if (typeof expected === 'string') return { outcome: 'skipped', about: expected }
    if (reply.status !== 200) return { outcome: 'refused', about }
    return judge(normalize(reply.body.data, text), normalize(expected, text))
  }
  const close = async () => {
    await service.close()
    await store.drop()
  }
  return { compare, close }
}

function findType(field: string, records: readonly Readonly<Record<string, unknown>>[]): string {
  if (times.has(field)) return 'date'
  const value = records.map((each) => each[field]).find((each) => each !== null)
  return types[typeof value as keyof typeof types]
}

/** Makes each list of constants behind ANY or ALL a parameter of the statement. */
function takeLists(text: string): { text: string; lists: readonly unknown[] } {
  const lists: unknown[] = []
  const asked = text.replaceAll(
    /(= ANY|<> ALL) \(ARRAY\[((?:-?\d+(?:\.\d+)?|'[^']*')(?:, (?:-?\d+(?:\.\d+)?|'[^']*'))*)\]\)/g,
    (_, sign: string, items: string) => {
      lists.push(items.split(', ').map((item) => JSON.parse(item.replaceAll("'", '"'))))
      return `${sign} ($${lists.length})`
    },
  )
  return { text: asked, lists }
}

function judge(ours: readonly string[], theirs: readonly string[]): Verdict {
  if (JSON.stringify(ours) === JSON.stringify(theirs)) return { outcome: 'same', about: '' }
  const at = Math.max(
    0,
    ours.findIndex((row, index) => row !== theirs[index]),
  )
  const about = `${ours.length} rows of ${theirs.length}; ${ours[at]} is not ${theirs[at]}`
  return { outcome: 'wrong', about }
}

function expectDone({ status, text }: TestReply): void {
  if (status >= 300) throw new Error(text)
}
