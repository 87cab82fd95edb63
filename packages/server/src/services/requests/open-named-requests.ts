import type { Uses } from '../call.ts'
import { ensureSecret, serviceSecrets } from '../identity/secrets.ts'
import { deriveAnswerKey } from './named-answer.ts'
import { NamedRequests } from './named-requests.ts'

/** Opens the register of requests with an Idempotency-Key; `keyFile` is the one of the service's signing key. */
export async function openNamedRequests(
  { database, tenants, world, log }: Uses<'database' | 'tenants' | 'world' | 'log'>,
  keyFile: string,
): Promise<NamedRequests> {
  const secret = await ensureSecret(database, world, serviceSecrets.requestNames)
  return new NamedRequests({
    ...{ database, tenants, world, log, secret },
    answerKey: deriveAnswerKey(keyFile),
  })
}
