import { readFile } from 'node:fs/promises'
import { tollbase } from '@tollbase/contract/contract'
import type { Route } from '@tollbase/contract/route'
import { SetupError } from '@tollbase/server/base/setup-error'

export type ServiceFlags = {
  readonly app: string
  readonly url: string
  readonly appKeyFile?: string
  readonly json?: boolean
}

export type Answer = {
  readonly status: number
  // biome-ignore lint/suspicious/noExplicitAny: an answer is printed as it came; its shape is the contract's.
  readonly body: any
}

/** Asks the service for an operation of one application. Throws a SetupError where there is no answer in JSON. */
export async function askService(
  { app, url, appKeyFile }: ServiceFlags,
  operation: 'getPricing' | 'setPricing' | 'simulatePricing',
  { body }: { readonly body?: object },
): Promise<Answer> {
  const route: Route = tollbase[operation]
  const path = route.path.replace(':app', encodeURIComponent(app))
  const key = appKeyFile === undefined ? undefined : await readKeyFile(appKeyFile)
  try {
    const reply = await fetch(`${url.replace(/\/+$/, '')}${path}`, {
      method: route.method,
      // The key would go on to wherever an answer points.
      redirect: 'error',
      headers: {
        'content-type': 'application/json',
        ...(key !== undefined && { 'x-app-key': key }),
      },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    })
    return { status: reply.status, body: await reply.json() }
  } catch (error) {
    throw new SetupError(`${url} gave no answer: ${error instanceof Error ? error.message : error}`)
  }
}

async function readKeyFile(file: string): Promise<string> {
  try {
    return (await readFile(file, 'utf8')).trim()
  } catch {
    throw new SetupError(`--app-key-file ${file} cannot be read`)
  }
}
