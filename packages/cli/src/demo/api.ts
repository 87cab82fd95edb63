import { tollbase } from '@tollbase/contract/contract'
import type { Input, Reply, Route } from '@tollbase/contract/route'
import { StepFailure } from './screen.ts'

type Operations = typeof tollbase
export type Api = {
  readonly url: string
  readonly stop: AbortSignal
  /** Calls an operation of the contract; throws a StepFailure that tells the service's refusal. */
  readonly call: <K extends keyof Operations>(
    operation: K,
    input: Input<Operations[K]>,
    key?: string,
  ) => Promise<Reply<Operations[K]>>
  /** Does the same as `call`, and returns the answer's text as it came. */
  readonly text: <K extends keyof Operations>(
    operation: K,
    input: Input<Operations[K]>,
    key?: string,
  ) => Promise<string>
}

/** The service's interface over HTTP, as the contract describes it. */
export function connectApi(url: string, stop: AbortSignal): Api {
  const text: Api['text'] = async (operation, input, key) => {
    const route: Route = tollbase[operation]
    const { params = {}, query = {}, body }: Parts = input ?? {}
    const path = route.path.replace(/:(\w+)/g, (_, name: string) =>
      encodeURIComponent(String(params[name])),
    )
    const search = new URLSearchParams(
      Object.entries(query).map(([name, value]): [string, string] => [name, String(value)]),
    )
    const reply = await fetch(`${url}${path}${search.size > 0 ? `?${search}` : ''}`, {
      method: route.method,
      signal: stop,
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && { 'x-app-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    const answer = await reply.text()
    if (!reply.ok)
      throw new StepFailure(`${operation} answered ${reply.status}: ${answer.slice(0, 500)}`)
    return answer
  }
  return {
    url,
    stop,
    text,
    call: async (operation, input, key) => JSON.parse(await text(operation, input, key)),
  }
}

type Parts = {
  readonly params?: Readonly<Record<string, unknown>>
  readonly query?: Readonly<Record<string, unknown>>
  readonly body?: unknown
}
