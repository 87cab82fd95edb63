import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import type { ViewWish } from './read-view.ts'
import { readVariable, reservedParameters } from './variables.ts'

/** What may be sent beside a definition. */
export type SentSettings = {
  readonly refresh_mode?: 'live' | 'lazy' | null
  readonly variables?: Readonly<Record<string, string>> | null
  readonly access_policy?: unknown
  readonly price?: unknown
  readonly description?: string | null
  readonly dry_run?: unknown
}

/** The settings of a new view, with their defaults. */
export function readSettings(
  sent: SentSettings,
): Pick<ViewWish, 'refreshMode' | 'variables' | 'description' | 'accessPolicy'> {
  // Passed over, it would make what was not to be made.
  if (sent.dry_run !== undefined && sent.dry_run !== false)
    throw invalid(
      '/dry_run',
      'is not possible of views; POST .../explain and /query/sql tell what its SELECT does',
    )
  return {
    refreshMode: sent.refresh_mode ?? 'lazy',
    variables: readVariables(sent.variables ?? null),
    description: sent.description ?? null,
    accessPolicy: withPrice(sent.access_policy ?? null, sent.price ?? null),
  }
}

function readVariables(
  variables: Readonly<Record<string, string>> | null,
): Readonly<Record<string, string>> | null {
  const entries = Object.entries(variables ?? {})
  if (entries.length > limits.viewVariablesMax)
    throw invalid('/variables', `has more than ${limits.viewVariablesMax} names`)
  for (const [name, path] of entries) {
    if (reservedParameters.has(name))
      throw invalid(`/variables/${name}`, 'is a parameter of every view; give it another name')
    // What no request could use is refused now.
    readVariable(path, { text: '1', pointer: `/variables/${name}` })
  }
  return variables
}

/** A price may stand in the policy or beside it. */
function withPrice(policy: unknown, price: unknown): unknown {
  if (price === null) return policy
  if (typeof policy === 'string') return { read: policy, price }
  if (policy !== null && !isRecord(policy))
    throw invalid('/access_policy', 'must be an object beside a price')
  if (policy?.price !== undefined && policy.price !== null)
    throw invalid('/price', 'is said in access_policy already; say it once')
  return { ...policy, price }
}
