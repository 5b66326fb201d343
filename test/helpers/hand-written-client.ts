// A client as hosts write it by hand, before they migrate.
import { HttpModule, HttpService } from '@nestjs/axios';
import { Injectable, Module } from '@nestjs/common';
import { readFileSync } from 'node:fs';
import { Agent } from 'node:https';
import { firstValueFrom } from 'rxjs';

const { API_URL, AUTH_URL, CLIENT_ID = '', CLIENT_SECRET = '' } = process.env;
const { CERT_FILE = '', KEY_FILE = '', CHAIN_FILE = '' } = process.env;

@Injectable()
export class BankClient {
  private token?: { value: string; endsAt: number };

  constructor(private readonly http: HttpService) {}

  async banks(): Promise<unknown> {
    const headers = { authorization: `Bearer ${await this.accessToken()}` };
    return (await firstValueFrom(this.http.get<unknown>('/banks/v1', { headers }))).data;
  }

  private async accessToken(): Promise<string> {
    if (this.token && this.token.endsAt > Date.now()) return this.token.value;
    const id = { client_id: CLIENT_ID, client_secret: CLIENT_SECRET };
    const form = new URLSearchParams({ grant_type: 'client_credentials', scope: 'api', ...id });
    const { data } = await firstValueFrom(this.http.post(`${AUTH_URL}/oauth2/token`, form));
    this.token = { value: data.access_token, endsAt: Date.now() + data.expires_in * 1000 };
    return data.access_token;
  }
}

const [cert, key, ca] = [CERT_FILE, KEY_FILE, CHAIN_FILE].map((file) => readFileSync(file));

@Module({
  imports: [
    HttpModule.register({ baseURL: API_URL, timeout: 10_000, httpsAgent: new Agent({ cert, key, ca }) }),
  ],
  providers: [BankClient],
  exports: [BankClient],
})
export class BankClientModule {}
