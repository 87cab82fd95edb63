import { type ErrorCode, errors } from '@tollbase/contract/errors'
import { listErrorCodes } from '@tollbase/contract/openapi'
import { ErrorBody } from '@tollbase/contract/schemas'
import { toKnownMembers } from '../../../packages/server/src/base/known-members.ts'
import { compileCheck } from '../../../packages/server/src/http/validate.ts'
import { checkReply, findRoute } from '../../support/contract-replies.ts'
import { unknownMember } from './requests.ts'

export type Answer = {
  readonly status: number
  readonly headers: Readonly<Record<string, string | string[] | undefined>>
  readonly text: string
}

/** The codes of requests that were refused before they reached an endpoint. */
const anywhere: readonly string[] = ['ROUTE_NOT_FOUND', 'METHOD_NOT_ALLOWED']

/** Words of stack traces, SQL and drivers, which reveal the implementation to strangers. */
const inside =
  /\bat .{1,80}:\d+:\d+|node_modules|\.ts:\d|SELECT .* FROM|INSERT INTO|syntax error at or near|relation "|invalid input syntax|invalid byte sequence|violates \w+ constraint|ECONN|assertion failed|undefined is not|Cannot read prop/

const checkError = compileCheck(ErrorBody)

/**
 * Describes what is wrong with an answer, or returns undefined: whatever was asked, a client can understand the
 * answer.
 */
export function findProblem(
  request: { readonly method: string; readonly path: string; readonly body?: string },
  answer: Answer,
): string | undefined {
  const { status, headers, text } = answer
  if (request.method === 'HEAD') return status >= 500 ? `status ${status}` : undefined
  const type = String(headers['content-type'] ?? '')
  if (status < 400) {
    if (hasUnknown(request)) return 'an unknown member was taken'
    try {
      checkReply(request, {
        status,
        headers: new Headers(Object.entries(headers).map(([name, one]) => [name, String(one)])),
        body: type.startsWith('application/json') ? JSON.parse(text) : undefined,
        text,
      })
    } catch (error) {
      return String(error)
    }
    return undefined
  }
  if (!type.startsWith('application/json')) return `an error of type ${type}`
  const body = parsed(text)
  if (body === undefined) return 'an error that is not JSON'
  if (status === 402 && 'accepts' in body) return undefined
  const own = findRoute(request.method, request.path)?.route.refusalReplies?.[status]
  try {
    const check = own === undefined ? checkError : compileCheck(own)
    check(body, '')
  } catch (error) {
    return `an error of another shape: ${String(error)}`
  }
  if (own !== undefined) return undefined
  return wrongError(request, { status, headers, body, text })
}

/** Says that the request has the unknown member in a place where the contract lists the members. */
function hasUnknown(request: { method: string; path: string; body?: string }): boolean {
  const route = findRoute(request.method, request.path)?.route
  const isTold = new URLSearchParams(request.path.split('?')[1]).has(unknownMember)
  const takesAny = route?.query !== undefined && toKnownMembers(route.query) === undefined
  if (isTold && !takesAny && request.method !== 'OPTIONS') return true
  const body = request.body === undefined ? undefined : parsed(request.body)
  return (
    body !== undefined &&
    Object.hasOwn(body, unknownMember) &&
    toKnownMembers(route?.body) !== undefined
  )
}

function parsed(text: string): Readonly<Record<string, unknown>> | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return typeof value === 'object' && value !== null ? { ...value } : undefined
  } catch {
    return undefined
  }
}

function wrongError(
  request: { readonly method: string; readonly path: string },
  { status, headers, body, text }: Answer & { readonly body: Readonly<Record<string, unknown>> },
): string | undefined {
  const code = String(body.code)
  const row = Object.hasOwn(errors, code) ? errors[code as ErrorCode] : undefined
  if (row === undefined) return `an unknown code ${code}`
  if (row.status !== status) return `${code} with status ${status}`
  if ('records' in body) return 'an error with records'
  if (inside.test(text)) return 'an error that tells of the inside'
  const route = findRoute(request.method, request.path)?.route
  const declared: readonly string[] =
    route === undefined ? Object.keys(errors) : listErrorCodes(route)
  if (!anywhere.includes(code) && !declared.includes(code)) return `${code} is not declared`
  // Nothing here overloads the service, so an unavailable service has stopped.
  if (code === 'UNAVAILABLE') return 'the service cannot do it'
  // The upstream of the fixture refuses some of what it is sent.
  if (code === 'UPSTREAM_FAILED') return undefined
  if (status === 503 && headers['retry-after'] === undefined) return '503 without Retry-After'
  return status >= 500 && status !== 503 ? `status ${status}` : undefined
}
