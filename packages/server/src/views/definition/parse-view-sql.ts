import { limits } from '@tollbase/contract/limits'
import type { Fault } from '../../base/fault.ts'
import { makeInvalidFault } from '../../base/fault.ts'
import { checkText } from '../../query/operand.ts'
import { buildQuery, type SqlOptions } from '../../query/sql/parse-sql.ts'
import { tokenTypes } from '../../query/sql/parser.ts'
import { makeRefusal, readSource, readTokens, type SqlToken } from '../../query/sql/source-text.ts'
import { awaitTurnAfterSteps } from '../../query/steps.ts'
import { readViewStatements } from './read-view-statements.ts'
import { toDefinition } from './select-to-definition.ts'
import type { ViewDefinition } from './view-definition.ts'

export type ViewStatement = {
  readonly name: string
  readonly ifNotExists: boolean
  readonly orReplace: boolean
  readonly definition: ViewDefinition
}

/** The known facts about the models, so that errors about them can name a place in the statement. */
export type KnownModels = {
  readonly typesOf?: SqlOptions['typesOf']
  readonly viewOf?: (model: string) => ViewDefinition | undefined
}

/**
 * Parses the view that CREATE [OR REPLACE] MATERIALIZED VIEW [IF NOT EXISTS] app::name AS SELECT states, `app`
 * being the application it is created in; or throws a 400 that names the line and column.
 */
export async function parseViewSql(
  sql: unknown,
  app: string,
  known: (models: readonly string[]) => KnownModels | Promise<KnownModels> = () => ({}),
): Promise<ViewStatement> {
  if (typeof sql !== 'string') throw makeInvalidFault('/sql', 'must be a string')
  checkText(sql, '/sql')
  if (sql.trim() === '') throw makeInvalidFault('/sql', 'is empty')
  if (sql.length > limits.sqlCharsMax)
    throw makeInvalidFault('/sql', `is longer than ${limits.sqlCharsMax} characters`)
  const tokens = (await readTokens(sql)).filter(
    ({ type }) => type !== tokenTypes.lineComment && type !== tokenTypes.blockComment,
  )
  const refuse = (at: number | undefined, problem: string) => makeRefusal(sql, at, problem)
  if (tokens.length === 0) throw refuse(0, 'no statement that can be read')
  const head = readHead(tokens, refuse)
  if (head.app !== app)
    throw refuse(head.at, `the application ${head.app}, but the view is created in ${app}`)
  checkEnd(tokens, refuse)
  // Blanks in place of the head keep every place in the text as it was sent.
  const select = sql.slice(0, head.end).replaceAll(/[^\n]/g, ' ') + sql.slice(head.end)
  const source = await readSource(select)
  const self = `${app}::${head.name}`
  const models = [...new Set(listTableModels(source.select))]
  if (models.length === 0) throw makeInvalidFault('/sql', 'reads no collection')
  const { typesOf, viewOf } = await known(models)
  const views = await readViewStatements(models, { pointer: '/sql', self, viewOf })
  buildQuery(source, {
    now: undefined,
    viewOf: (model) => views.get(model),
    ...(typesOf === undefined ? {} : { typesOf }),
  })
  await awaitTurnAfterSteps()
  const { name, ifNotExists, orReplace } = head
  return { name, ifNotExists, orReplace, definition: toDefinition(source) }
}

/** Lists the tables of a statement that is parsed but not checked. */
function listTableModels(node: unknown): readonly string[] {
  if (typeof node !== 'object' || node === null) return []
  const { schemaname, relname }: { schemaname?: unknown; relname?: unknown } = node
  const own = typeof schemaname === 'string' ? [`${schemaname}::${relname}`] : []
  return [...own, ...Object.values(node).flatMap(listTableModels)]
}

type Refuse = (at: number | undefined, problem: string) => Fault

type Head = Omit<ViewStatement, 'definition'> & {
  readonly app: string
  /** The place of the name; `end` is where the SELECT begins. */
  readonly at: number
  readonly end: number
}

/** Reads the tokens up to AS; the parser itself knows no OR REPLACE of materialized views. */
function readHead(tokens: readonly SqlToken[], refuse: Refuse): Head {
  let next = 0
  const here = () => tokens[next]?.start
  const take = (...words: readonly string[]): boolean => {
    const isThere = words.every((word, at) => isWord(tokens[next + at], word))
    if (isThere) next += words.length
    return isThere
  }
  const only = 'a statement that is no CREATE [OR REPLACE] MATERIALIZED VIEW … AS SELECT'
  if (!take('create')) throw refuse(here(), only)
  const orReplace = take('or', 'replace')
  if (isWord(tokens[next], 'unlogged')) throw refuse(here(), 'UNLOGGED, which is not possible')
  if (!take('materialized', 'view')) throw refuse(here(), only)
  const ifNotExists = take('if', 'not', 'exists')
  if (ifNotExists && orReplace) throw refuse(here(), 'both OR REPLACE and IF NOT EXISTS')
  const at = here()
  const [app, sign, name] = [tokens[next], tokens[next + 1], tokens[next + 2]]
  // Behind the sign any word is the view's name, as it is a collection's.
  const isWordOrName = isName(name) || (name?.keyword ?? 0) !== 0
  const isNamed = sign?.text === '::' && isName(app) && isWordOrName
  if (at === undefined || !isNamed || app === undefined || name === undefined)
    throw refuse(at, 'no name of the view here, which is written app::name')
  next += 3
  const named = getTokenName(name)
  if (!/^[A-Za-z0-9_-]{1,63}$/.test(named))
    throw refuse(name.start, `the name ${named}, which is not of 1 to 63 of a-z A-Z 0-9 _ -`)
  const end = here()
  if (!isWord(tokens[next], 'as') || end === undefined)
    throw refuse(
      end,
      `${clauses.get(tokens[next]?.text.toLowerCase() ?? '') ?? 'something else'} where AS SELECT is expected`,
    )
  return { app: getTokenName(app), name: named, at, end: end + 2, ifNotExists, orReplace }
}

/** The clauses that PostgreSQL allows between the name and AS. */
const clauses = new Map([
  ['(', 'a list of columns; name them with AS,'],
  ['using', 'USING (an access method)'],
  ['with', 'WITH (storage parameters)'],
  ['tablespace', 'TABLESPACE'],
])

function isWord(token: SqlToken | undefined, word: string): boolean {
  return token?.text.toLowerCase() === word && token.keyword !== 0
}

function isName(token: SqlToken | undefined): boolean {
  return token?.type === tokenTypes.name || token?.keyword === 1
}

function getTokenName({ text }: SqlToken): string {
  return text.startsWith('"') ? text.slice(1, -1).replaceAll('""', '"') : text
}

/** Refuses WITH [NO] DATA, which may end a statement that creates a view, but no SELECT. */
function checkEnd(all: readonly SqlToken[], refuse: Refuse): void {
  const tokens = all.filter((token, at) => token.text !== ';' || at < all.length - 1)
  const [word, data] = [tokens.at(-2), tokens.at(-1)]
  if (!isWord(data, 'data')) return
  const isNo = isWord(word, 'no') && isWord(tokens.at(-3), 'with')
  if (isNo) throw refuse(tokens.at(-3)?.start, 'WITH NO DATA; a view is always filled')
  if (isWord(word, 'with')) throw refuse(word?.start, 'WITH DATA; leave it out')
}
