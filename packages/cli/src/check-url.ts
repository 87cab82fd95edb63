import { SetupError } from '@tollbase/server/base/setup-error'

/** Throws a SetupError where an option that names a server does not. */
export function checkUrl(option: string, url: string): void {
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol))
    throw new SetupError(`${option} must be a URL of http or https, not ${url}`)
}
