import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { Database } from '../../database/database.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Tenant } from '../applications/tenancy.ts'
import type { JudgedSource } from '../reading/authorize-sources.ts'

/** What PostgreSQL would do for a statement. */
export type QueryPlan = {
  /** In PostgreSQL's unit: a page read in order is 1. */
  readonly cost: number
  /** Names of the indexes in the database that something is found by, or that are gone through in their order. */
  readonly indexes: readonly string[]
  /** Those of them that nothing is found by: each entry is looked at. */
  readonly walked: readonly string[]
}

/**
 * The plan of a question, to be told to who asks. 403 where the question is about what is not the application's own, or
 * what the caller may not read.
 */
export async function planToTell(
  database: Database,
  tenant: Tenant,
  { sources, statement }: { sources: readonly JudgedSource[]; statement: SqlStatement },
): Promise<QueryPlan> {
  refuseForeign(sources, tenant)
  return planOf(database, statement)
}

/** Plans the statement with its values, and does not run it. Nothing of a plan is told but by `planToTell`. */
export async function planOf(database: Database, statement: SqlStatement): Promise<QueryPlan> {
  const rows = await database.query(sql`EXPLAIN (FORMAT JSON) ${statement}`)
  const [sent] = Object.values(rows[0] ?? {})
  const parsed: unknown = typeof sent === 'string' ? JSON.parse(sent) : sent
  const [root]: unknown[] = Array.isArray(parsed) ? parsed : []
  const top = isRecord(root) && isRecord(root.Plan) ? root.Plan : {}
  const nodes = [...nodesOf(top)]
  const cost = top['Total Cost']
  return {
    cost: typeof cost === 'number' ? cost : 0,
    indexes: namesIn(nodes),
    walked: namesIn(nodes.filter((node) => node['Index Cond'] === undefined)),
  }
}

/** A plan tells how much a collection holds, and how its values are spread. */
function refuseForeign(sources: readonly JudgedSource[], { application }: Tenant): void {
  const foreign = sources.find(
    (one) =>
      !one.free &&
      (one.tenant.application.number !== application.number ||
        !isOpen(one.tenant.data.catalog, one.collection)),
  )
  if (foreign === undefined) return
  throw new Fault('FORBIDDEN', {
    message: `The plan of a query over ${foreign.model} would tell what it holds, which is for who may read it free of charge`,
  })
}

type Node = Readonly<Record<string, unknown>>

function* nodesOf(node: Node): Generator<Node> {
  yield node
  const inner: unknown[] = Array.isArray(node.Plans) ? node.Plans : []
  for (const each of inner) if (isRecord(each)) yield* nodesOf(each)
}

function namesIn(nodes: readonly Node[]): string[] {
  return [...new Set(nodes.flatMap((node) => textsIn(node, 'Index Name')))]
}

function textsIn(node: Node, name: string): string[] {
  const text = node[name]
  return typeof text === 'string' ? [text] : []
}
