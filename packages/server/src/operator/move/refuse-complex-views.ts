import { Check } from 'typebox/value'
import { Fault } from '../../base/fault.ts'
import { BlockStore } from '../../chain/block-store.ts'
import { parseBlock } from '../../chain/parse-block.ts'
import type { Queryable } from '../../database/database.ts'
import { StoredView } from '../../model/definitions.ts'
import { planNewView } from '../../model/view-plan.ts'
import { isTooComplex } from '../../query/steps.ts'
import { makeUnsoundError } from './unsound-error.ts'

/**
 * Refuses a log with a view, though it be deleted by now, that takes more steps to read than one that is created here:
 * every replay of the log reads it without a bound, and so does the service when it opens the application.
 */
export async function refuseComplexViews(
  database: Queryable,
  schema: string,
  height: number,
): Promise<void> {
  for await (const row of new BlockStore(database, schema).readAll(1, () => height))
    for (const entry of parseBlock(row).entries) {
      if (entry?.header.type !== 'definition' || entry.header.kind !== 'view') continue
      const view = parseText(entry.body)
      if (Check(StoredView, view)) await refuseComplexView(view)
    }
}

async function refuseComplexView(view: StoredView): Promise<void> {
  try {
    await planNewView(view)
  } catch (error) {
    if (isTooComplex(error))
      throw makeUnsoundError(`the view ${JSON.stringify(view.name)}`, error.message)
    // A view that cannot be read any more has no rows.
    if (!(error instanceof Fault)) throw error
  }
}

/** A removal has no text, and the replay refuses one that is no JSON. */
function parseText(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
