import { Fault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { type SqlStatement, sql } from '../../database/sql.ts'
import { isOpen } from '../../model/read-level.ts'
import type { Tenant } from '../applications/tenants.ts'
import type { AuthorizedSource } from '../reading/authorize-sources.ts'
import type { Reader } from '../reading/run-query.ts'

/** PostgreSQL's plan for a statement. */
export type StatementPlan = {
  /** In PostgreSQL's unit: a page read in order is 1. */
  readonly cost: number
  /** Names of the indexes in the database that are searched, or scanned in their order. */
  readonly indexes: readonly string[]
  /** The indexes among them that are scanned as a whole. */
  readonly walked: readonly string[]
}

/**
 * Explains a read request to its caller. 403 where a source that is not free for the caller is another
 * application's, or is not open.
 */
export async function explainForCaller(
  reader: Reader,
  tenant: Tenant,
  { sources, statement }: { sources: readonly AuthorizedSource[]; statement: SqlStatement },
): Promise<StatementPlan> {
  refuseForeign(sources, tenant)
  return explainStatement(reader, statement)
}

/**
 * Plans the statement with its values, without running it: that of many joins takes seconds. Only `explainForCaller` may tell
 * a caller of a plan.
 */
export async function explainStatement(
  reader: Reader,
  statement: SqlStatement,
): Promise<StatementPlan> {
  const rows = await reader.query(sql`EXPLAIN (FORMAT JSON) ${statement}`)
  const [sent] = Object.values(rows[0] ?? {})
  const parsed: unknown = typeof sent === 'string' ? JSON.parse(sent) : sent
  const [root]: unknown[] = Array.isArray(parsed) ? parsed : []
  const top = isRecord(root) && isRecord(root.Plan) ? root.Plan : {}
  const nodes = [...walkNodes(top)]
  const cost = top['Total Cost']
  return {
    cost: typeof cost === 'number' ? cost : 0,
    indexes: listIndexNames(nodes),
    walked: listIndexNames(nodes.filter((node) => node['Index Cond'] === undefined)),
  }
}

/** A plan tells how much a collection holds, and how its values are spread. */
function refuseForeign(sources: readonly AuthorizedSource[], { application }: Tenant): void {
  const foreign = sources.find(
    (one) =>
      !one.free &&
      (one.tenant.application.number !== application.number ||
        !isOpen(one.tenant.data.catalog, one.readable)),
  )
  if (foreign === undefined) return
  throw new Fault('FORBIDDEN', {
    message: `The plan of a query over ${foreign.model} would tell what it holds, which is for who may read it free of charge`,
  })
}

type Node = Readonly<Record<string, unknown>>

function* walkNodes(node: Node): Generator<Node> {
  yield node
  const inner: unknown[] = Array.isArray(node.Plans) ? node.Plans : []
  for (const each of inner) if (isRecord(each)) yield* walkNodes(each)
}

function listIndexNames(nodes: readonly Node[]): string[] {
  return [...new Set(nodes.flatMap((node) => listTexts(node, 'Index Name')))]
}

function listTexts(node: Node, name: string): string[] {
  const text = node[name]
  return typeof text === 'string' ? [text] : []
}
