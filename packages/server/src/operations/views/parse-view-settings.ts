import { limits } from '@tollbase/contract/limits'
import { makeInvalidFault } from '../../base/fault.ts'
import { isRecord } from '../../base/is-record.ts'
import { checkPolicy } from '../../model/check-policy.ts'
import type { ViewSettings } from './resolve-view.ts'
import { parseVariable, reservedParameters } from './variables.ts'

/** Settings that may be sent beside a definition. */
export type SentSettings = {
  readonly refresh_mode?: 'live' | 'lazy' | null
  readonly variables?: Readonly<Record<string, string>> | null
  readonly access_policy?: unknown
  readonly price?: unknown
  readonly public?: boolean | null
  readonly description?: string | null
}

/** Parses and checks the settings that were sent with a view. */
export function parseViewSettings(sent: SentSettings): ViewSettings {
  checkPolicy(sent.access_policy)
  return {
    refreshMode: sent.refresh_mode ?? null,
    variables: parseVariables(sent.variables ?? null),
    description: sent.description ?? null,
    accessPolicy: addPublic(
      addPrice(sent.access_policy ?? null, sent.price ?? null),
      sent.public ?? null,
    ),
  }
}

function parseVariables(
  variables: Readonly<Record<string, string>> | null,
): Readonly<Record<string, string>> | null {
  const entries = Object.entries(variables ?? {})
  if (entries.length > limits.viewVariablesMax)
    throw makeInvalidFault('/variables', `has more than ${limits.viewVariablesMax} names`)
  for (const [name, path] of entries) {
    if (reservedParameters.has(name))
      throw makeInvalidFault(
        `/variables/${name}`,
        'is a parameter of every view; give it another name',
      )
    // A variable that no request could use is refused now.
    parseVariable(path, { text: '1', pointer: `/variables/${name}` })
  }
  return variables
}

/** A price may stand in the policy or beside it. */
function addPrice(policy: unknown, price: unknown): unknown {
  if (price === null) return policy
  if (typeof policy === 'string') return { read: policy, price }
  if (policy !== null && !isRecord(policy))
    throw makeInvalidFault('/access_policy', 'must be an object beside a price')
  if (policy?.price !== undefined && policy.price !== null)
    throw makeInvalidFault('/price', 'is said in access_policy already; say it once')
  return { ...policy, price }
}

/** `public` is another word for who may read: all, or the application's own keys. */
function addPublic(policy: unknown, isPublic: boolean | null): unknown {
  if (isPublic === null) return policy
  const read = isPublic ? 'public' : 'key'
  const said = (isRecord(policy) ? policy.read : policy) ?? read
  if (said !== read) throw makeInvalidFault('/public', 'contradicts access_policy; say it once')
  return isRecord(policy) ? { ...policy, read } : read
}
