import { limits } from '@tollbase/contract/limits'
import { invalid } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { checkPolicy } from '../../model/check-policy.ts'
import type { ViewSettings } from './resolve-view.ts'
import { readVariable, reservedParameters } from './variables.ts'

/** What may be sent beside a definition. */
export type SentSettings = {
  readonly refresh_mode?: 'live' | 'lazy' | null
  readonly variables?: Readonly<Record<string, string>> | null
  readonly access_policy?: unknown
  readonly price?: unknown
  readonly public?: boolean | null
  readonly description?: string | null
}

/** What was said of a view, checked. */
export function readSettings(sent: SentSettings): ViewSettings {
  checkPolicy(sent.access_policy)
  return {
    refreshMode: sent.refresh_mode ?? null,
    variables: readVariables(sent.variables ?? null),
    description: sent.description ?? null,
    accessPolicy: withPublic(
      withPrice(sent.access_policy ?? null, sent.price ?? null),
      sent.public ?? null,
    ),
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

/** `public` is another word for who may read: all, or the application's own keys. */
function withPublic(policy: unknown, isPublic: boolean | null): unknown {
  if (isPublic === null) return policy
  const read = isPublic ? 'public' : 'key'
  const said = (isRecord(policy) ? policy.read : policy) ?? read
  if (said !== read) throw invalid('/public', 'contradicts access_policy; say it once')
  return isRecord(policy) ? { ...policy, read } : read
}
