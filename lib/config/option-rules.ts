import {
  IsBoolean,
  IsIn,
  IsInt,
  IsOptional,
  Matches,
  Max,
  Min,
  ValidateNested,
  type ValidationOptions,
} from 'class-validator';
import {
  IsAuthAddress,
  IsHeaderName,
  IsProxyUrl,
  IsServiceAddress,
  IsSource,
  IsTokenStore,
} from './option-decorators.js';

// RFC 9562's form, any version: the specification only says UUID.
const UUID = /^[0-9a-f]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}$/i;
const DAY_MS = 86_400_000;

const oneOf = (values: string[]): PropertyDecorator =>
  IsIn(values, { message: `must be one of: ${values.join(', ')}` });
const flag = (): PropertyDecorator => IsBoolean({ message: 'must be true or false' });
const between = (least: number, most: number, unit: string): PropertyDecorator => {
  const options: ValidationOptions = {
    message: `must be a whole number of ${unit} from ${least} to ${most}`,
  };
  return (target, key) =>
    [IsInt(options), Min(least, options), Max(most, options)].forEach((rule) => rule(target, key));
};

class UrlRules {
  @IsOptional() @IsServiceAddress() baseUrl?: unknown;
  @IsOptional() @IsServiceAddress() oauthBaseUrl?: unknown;
  @IsOptional() @IsServiceAddress() sandboxUrl?: unknown;
  @IsOptional() @IsServiceAddress() sandboxMtlsUrl?: unknown;
  @IsOptional() @IsServiceAddress() @IsAuthAddress() authUrl?: unknown;
  @IsOptional() @IsServiceAddress() @IsAuthAddress() sandboxAuthUrl?: unknown;
}

class OAuthRules {
  @IsOptional()
  @Matches(UUID, { message: 'must be the application id of the dashboard, a UUID' })
  clientId?: unknown;
  @IsOptional() @IsSource({ orFunction: true }) clientSecret?: unknown;
  @IsOptional() @oneOf(['ahead', 'scheduled', 'on-expiry']) refresh?: unknown;
  @IsOptional() @flag() mtls?: unknown;
}

class TlsRules {
  @IsOptional() @IsSource() certificate?: unknown;
  @IsOptional() @IsSource() privateKey?: unknown;
  @IsOptional() @IsSource() passphrase?: unknown;
  @IsOptional() @IsSource() chain?: unknown;
  @IsOptional() @flag() reload?: unknown;
}

class LinkSdkRules {
  @IsOptional() @between(0, 86_400, 'seconds') minTokenLife?: unknown;
  @IsOptional() @flag() includeAppToken?: unknown;
}

class TokenCacheRules {
  @IsOptional() @between(1, 10_000_000, 'entries') maxEntries?: unknown;
}

class HttpRules {
  @IsOptional() @between(1, DAY_MS, 'milliseconds') timeout?: unknown;
  @IsOptional() @between(0, 10, 'attempts') retries?: unknown;
  @IsOptional() @between(1, 2 ** 30, 'bytes') maxResponseBytes?: unknown;
  @IsOptional() @between(1, 65_535, 'connections') maxSockets?: unknown;
  @IsOptional() @flag() trailingSlash?: unknown;
  @IsOptional() @IsProxyUrl() proxy?: unknown;
  @IsOptional() @oneOf(['node', 'axios']) adapter?: unknown;
  @IsOptional() @IsHeaderName() correlationIdHeader?: unknown;
  @IsOptional() @between(0, DAY_MS, 'milliseconds') shutdownTimeout?: unknown;
}

/** The form of ServiceModuleOptions, value by value; what options need of each other is in requirements.ts. */
export class OptionRules {
  @IsOptional() @oneOf(['production', 'sandbox']) environment?: unknown;
  @IsOptional() @oneOf(['mtls', 'oauth', 'app-token']) authentication?: unknown;
  @IsOptional() @ValidateNested() urls?: UrlRules;
  @IsOptional() @IsSource() appToken?: unknown;
  @IsOptional() @IsHeaderName() appTokenHeader?: unknown;
  @IsOptional() @flag() sendAppTokenWithBearer?: unknown;
  @IsOptional() @ValidateNested() oauth?: OAuthRules;
  @IsOptional() @ValidateNested() tls?: TlsRules;
  @IsOptional() @ValidateNested() linkSdk?: LinkSdkRules;
  @IsOptional() @ValidateNested() tokenCache?: TokenCacheRules;
  @IsOptional() @IsTokenStore() tokenStore?: unknown;
  @IsOptional() @ValidateNested() http?: HttpRules;
}

/** The sections that are objects of their own. */
export const SECTION_RULES = {
  urls: UrlRules,
  oauth: OAuthRules,
  tls: TlsRules,
  linkSdk: LinkSdkRules,
  tokenCache: TokenCacheRules,
  http: HttpRules,
} as const;
