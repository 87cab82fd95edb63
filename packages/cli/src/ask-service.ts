import { readFile } from 'node:fs/promises'
import { type OperationId, tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import { explainReadError, findErrorCode } from '@tollbase/server/base/files'
import { SetupError } from '@tollbase/server/base/setup-error'
import { checkUrl } from './check-url.ts'
import { showControls } from './print-line.ts'

export type Answer = {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer is printed as it came; its shape is the contract's.
  readonly body: any
}

/** A question to a service, and who asks it. */
export type Question = {
  readonly url: string
  /** The application in the operation's path. */
  readonly app?: string
  /** The headers that show who asks. */
  readonly headers: Readonly<Record<string, string>>
  readonly query?: Readonly<Record<string, string>>
  readonly body?: object
}

/** Asks the service for an operation. Throws a SetupError where there is no answer in JSON. */
export async function askService(
  operation: OperationId,
  { url, app = '', headers, query = {}, body }: Question,
): Promise<Answer> {
  checkUrl('--url', url)
  const route: Route = tollbase[operation]
  const path = route.path.replace(':app', encodeURIComponent(app))
  const asked = new URLSearchParams(query).toString()
  try {
    const reply = await fetch(`${url.replace(/\/+$/, '')}${path}${asked && `?${asked}`}`, {
      method: route.method,
      // The key would go on to wherever an answer points.
      redirect: 'error',
      headers: { 'content-type': 'application/json', ...headers },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: reply.status, body: await reply.json() }
  } catch (error) {
    throw new SetupError(`--url ${url}: ${explainNoAnswer(error)}`)
  }
}

/** Says why a service gave no answer; the error of `fetch` itself says only that it failed. */
function explainNoAnswer(error: unknown): string {
  const cause = error instanceof Error && error.cause instanceof Error ? error.cause : error
  switch (findErrorCode(cause)) {
    case 'ECONNREFUSED':
      return 'nothing listens there; start the service, or name the address of one that runs'
    case 'ENOTFOUND':
    case 'EAI_AGAIN':
      return 'there is no host of this name'
    default:
      break
  }
  if (error instanceof SyntaxError) return 'what answers there is no service: it sends no JSON'
  return `no answer: ${cause instanceof Error ? cause.message : String(cause)}`
}

/** Reads a key that an option names the file of. */
export async function readKeyFile(option: string, file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch (error) {
    throw new SetupError(`${option} ${file} cannot be read: ${explainReadError(error)}`)
  }
}

/** Prints the answer and returns the exit code. */
export function endWithAnswer(
  { json }: { readonly json?: boolean },
  { status, body }: Answer,
  print: (body: Answer['body']) => void,
): number {
  const isDone = status >= 200 && status < 300
  if (json === true) console.log(JSON.stringify(body, null, 2))
  else if (isDone) print(body)
  else
    console.error(
      showControls(`tollbase: ${body.code ?? status}: ${body.error ?? 'no answer of a service'}`),
    )
  return isDone ? 0 : 1
}
